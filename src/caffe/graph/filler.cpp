#include "caffe/graph/filler.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

class Filling {
 public:
  Filling(const FillerParameter& filler, const Shape& shape, const RandomStream& random,
          uint64_t draw, std::span<float> values, size_t first = 0)
      : filler_(filler),
        shape_(shape),
        random_(random),
        draw_(draw),
        first_(first),
        values_(values) {}

  // Checks the options without filling values.
  void Check() const {
    const std::string_view type = Type();
    if (type == "uniform") CheckRange(filler_.min(), filler_.max());
    if (type == "gaussian") CheckGaussian();
    if (type == "bilinear") CheckBilinear();
  }

  void Run() {
    Check();
    const std::string_view type = Type();
    if (type == "constant") {
      std::fill(values_.begin(), values_.end(), filler_.value());
    } else if (type == "uniform") {
      Uniform(filler_.min(), filler_.max());
    } else if (type == "gaussian") {
      Normal(filler_.mean(), filler_.std());
      if (filler_.sparse() >= 0) Sparsify();
    } else if (type == "positive_unitball") {
      UnitBall();
    } else if (type == "xavier") {
      const float limit = static_cast<float>(std::sqrt(3.0 / Fan()));
      Uniform(-limit, limit);
    } else if (type == "msra") {
      Normal(0, static_cast<float>(std::sqrt(2.0 / Fan())));
    } else {
      Bilinear();
    }
  }

 private:
  // The type without the "static" suffix of NVCaffe's types.
  std::string_view Type() const {
    std::string_view type = filler_.type();
    constexpr std::string_view kStatic = "static";
    if (type.size() > kStatic.size() && type.ends_with(kStatic)) type.remove_suffix(kStatic.size());
    constexpr std::string_view kKnown[] = {"constant", "uniform", "gaussian", "positive_unitball",
                                           "xavier",   "msra",    "bilinear"};
    if (std::ranges::find(kKnown, type) != std::end(kKnown)) return type;
    const std::string near = NearestName(
        std::string(type), std::vector<std::string>(std::begin(kKnown), std::end(kKnown)));
    throw InvalidArgument(StrCat("unknown filler type '", filler_.type(), "'",
                                 near.empty() ? "" : "; did you mean '" + near + "'?"));
  }

  void CheckRange(float low, float high) const {
    Require(low <= high, "filler '", filler_.type(), "' has min ", low, " above max ", high);
  }

  void CheckGaussian() const {
    Require(filler_.std() >= 0, "filler '", filler_.type(), "' has std ", filler_.std(),
            "; it must be 0 or more");
    Require(filler_.sparse() < 0 || filler_.sparse() <= Outputs(), "filler 'gaussian' has sparse ",
            filler_.sparse(), ", but the blob has only ", Outputs(), " outputs");
  }

  void CheckBilinear() const {
    Require(shape_.num_axes() == 4 && shape_[2] == shape_[3],
            "filler 'bilinear' needs a blob with 4 axes and a square kernel, got ", shape_);
  }

  void Uniform(float low, float high) {
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = low + (high - low) * ToUniform(random_.Bits(first_ + i, draw_));
    }
  }

  void Normal(float mean, float deviation) {
    for (size_t i = 0; i < values_.size();) {
      const auto bits = random_.Block((first_ + i) / 4, draw_);
      const auto first = ToNormal(bits[0], bits[1]), second = ToNormal(bits[2], bits[3]);
      const float normals[4] = {first[0], first[1], second[0], second[1]};
      for (size_t k = (first_ + i) % 4; k < 4 && i < values_.size(); ++k, ++i)
        values_[i] = mean + deviation * normals[k];
    }
  }

  void Sparsify() {
    const float keep = static_cast<float>(filler_.sparse()) / static_cast<float>(Outputs());
    const uint64_t offset =
        (static_cast<uint64_t>(shape_.count()) + 3) / 4 * 4;  // after the normal numbers
    for (size_t i = 0; i < values_.size(); ++i) {
      if (ToUniform(random_.Bits(offset + first_ + i, draw_)) >= keep) values_[i] = 0;
    }
  }

  void UnitBall() {
    Uniform(0, 1);
    const size_t item = values_.size() / static_cast<size_t>(std::max<int64_t>(Outputs(), 1));
    for (size_t begin = 0; item > 0 && begin < values_.size(); begin += item) {
      double sum = 0;
      for (size_t i = begin; i < begin + item; ++i) sum += values_[i];
      for (size_t i = begin; i < begin + item; ++i)
        values_[i] = static_cast<float>(values_[i] / sum);
    }
  }

  // Extent of the first axis; 1 for a scalar (a slope or scale that all channels share).
  int64_t Outputs() const { return shape_.LegacyExtent(0); }

  double Fan() const {
    const double count = static_cast<double>(shape_.count());
    const double fan_in = count / static_cast<double>(Outputs());
    const double fan_out = shape_.num_axes() > 1 ? count / static_cast<double>(shape_[1]) : count;
    switch (filler_.variance_norm()) {
      case FillerParameter::FAN_OUT:
        return fan_out;
      case FillerParameter::AVERAGE:
        return (fan_in + fan_out) / 2;
      default:
        return fan_in;
    }
  }

  // Weight of a pixel at x in a kernel of width k that doubles (or more) the resolution.
  void Bilinear() {
    const int64_t width = shape_[3];
    const double factor = std::ceil(static_cast<double>(width) / 2);
    const double centre = (2 * factor - 1 - std::fmod(factor, 2.0)) / (2 * factor);
    for (size_t k = 0; k < values_.size(); ++k) {
      const auto i = static_cast<int64_t>(first_ + k);
      const double x = static_cast<double>(i % width);
      const double y = static_cast<double>((i / width) % shape_[2]);
      values_[k] = static_cast<float>((1 - std::abs(x / factor - centre)) *
                                      (1 - std::abs(y / factor - centre)));
    }
  }

  const FillerParameter& filler_;
  const Shape& shape_;
  const RandomStream& random_;
  const uint64_t draw_;
  const size_t first_;  // index of values_[0] in the shape
  std::span<float> values_;
};

}  // namespace

void Fill(const FillerParameter& filler, const Shape& shape, const RandomStream& random,
          uint64_t draw, std::span<float> values) {
  CAFFE_ASSERT(static_cast<int64_t>(values.size()) == shape.count());
  Filling(filler, shape, random, draw, values).Run();
}

bool FillsParts(const FillerParameter& filler) {
  return !filler.type().starts_with("positive_unitball");  // divides by sums of rows
}

void FillPart(const FillerParameter& filler, const Shape& shape, const RandomStream& random,
              int64_t first, std::span<float> values) {
  CAFFE_ASSERT(FillsParts(filler) && first + static_cast<int64_t>(values.size()) <= shape.count());
  Filling(filler, shape, random, 0, values, static_cast<size_t>(first)).Run();
}

void CheckFiller(const FillerParameter& filler, const Shape& shape) {
  Filling(filler, shape, RandomStream(0, 0), 0, {}).Check();
}

}  // namespace caffe
