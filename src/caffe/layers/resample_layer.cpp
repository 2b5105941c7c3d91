#include <algorithm>
#include <cmath>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/resize_base.hpp"

namespace caffe {
namespace {

// Filters; t is the distance from their centre in pixels.
double Triangle(double t) {
  return std::max(0.0, 1 - std::abs(t));
}

double CatmullRom(double t) {
  t = std::abs(t);
  if (t <= 1) return (1.5 * t - 2.5) * t * t + 1;
  return t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0;
}

// Resizing of FlowNet. The position of an output's centre is the one with which its nets were
// trained: the offset along one axis is half a pixel's size along the other. As in FlowNet, the
// second bottom's size has precedence over the options, and height and width over factor.
class ResampleLayer final : public ResizeBase {
 public:
  explicit ResampleLayer(const LayerParameter& param)
      : ResizeBase(param), options_(param.resample_param()) {
    Require(options_.has_height() == options_.has_width(),
            "has only one of height and width; give both");
    Require(options_.factor() > 0, "factor is ", options_.factor(), "; it must be above 0");
    Require(param.bottom_size() == 2 || options_.has_height() || options_.has_factor(),
            "has no size; set resample_param { height width } or factor, or give a second bottom");
  }

 private:
  ImageSize TopSize(const std::vector<Shape>& bottoms) const override {
    if (bottoms.size() == 2) return SizeOfSecondBottom(bottoms, /*has_options=*/false);
    if (options_.has_height()) return {options_.height(), options_.width()};
    return {ScaledExtent(bottoms[0][2], options_.factor()),
            ScaledExtent(bottoms[0][3], options_.factor())};
  }

  AxisMatrix Filter(int axis, const ImageSize& from, const ImageSize& to) const override {
    const auto pixel = [&](int k) {
      return static_cast<double>(from[k]) / static_cast<double>(to[k]);
    };
    AxisMatrix filter(from[axis]);
    for (int64_t output = 0; output < to[axis]; ++output) {
      const double begin = static_cast<double>(output) * pixel(axis);
      const double centre = begin + pixel(1 - axis) / 2 - 0.5;
      filter.AddRow(options_.type() == ResampleParameter::AREA
                        ? Covered(begin, begin + pixel(axis), from[axis])
                        : Around(centre, pixel(axis), from[axis]));
    }
    return filter;
  }

  // The fractions of pixels between two positions; pixel i covers i to i + 1.
  static std::vector<AxisMatrix::Tap> Covered(double begin, double end, int64_t extent) {
    std::vector<AxisMatrix::Tap> taps;
    for (auto i = static_cast<int64_t>(begin); i < extent && static_cast<double>(i) < end; ++i) {
      const double left = static_cast<double>(i);
      const double part = std::min(left + 1, end) - std::max(left, begin);
      taps.push_back({i, part / (end - begin)});
    }
    return taps;
  }

  // Weights sum to 1 at the border, too. A window without pixels, which is possible due to that
  // offset if the aspect ratio changes, gives 0.
  std::vector<AxisMatrix::Tap> Around(double centre, double pixel, int64_t extent) const {
    if (options_.type() == ResampleParameter::NEAREST) {
      return {{std::clamp<int64_t>(std::lround(centre), 0, extent - 1), 1}};
    }
    const auto weigh = options_.type() == ResampleParameter::CUBIC ? CatmullRom : Triangle;
    const double width = options_.antialias() ? std::max(pixel, 1.0) : 1, reach = 2 * width;
    const auto first = static_cast<int64_t>(std::ceil(std::max(centre - reach, 0.0)));
    const auto last = std::min(static_cast<int64_t>(std::floor(centre + reach)), extent - 1);
    std::vector<AxisMatrix::Tap> taps;
    double sum = 0;
    for (int64_t i = first; i <= last; ++i) {
      taps.push_back({i, weigh((static_cast<double>(i) - centre) / width)});
      sum += taps.back().weight;
    }
    if (sum == 0) return {};
    for (AxisMatrix::Tap& tap : taps) tap.weight /= sum;
    return taps;
  }

  const ResampleParameter options_;
};

REGISTER_LAYER_CLASS(Resample);

}  // namespace
}  // namespace caffe
