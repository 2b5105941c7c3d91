#include "caffe/data/transformers/datum_transformer.hpp"

#include <cstring>

#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
#define CAFFE_ROW_CLONES
#else
#define CAFFE_ROW_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

namespace caffe::data {
namespace {

// One row of `width` output pixels. Element i is at in[i * step]; step 3 is interleaved colour.
template <int kStep, bool kHasMeanRow>
CAFFE_ROW_CLONES void Row(const uint8_t* in, const float* mean_row, float mean, float scale, int width,
                          float* out) {
  for (int i = 0; i < width; ++i) {
    out[i] = (static_cast<float>(in[i * kStep]) - (kHasMeanRow ? mean_row[i] : mean)) * scale;
  }
}
template <int kStep, bool kHasMeanRow>
CAFFE_ROW_CLONES void MirroredRow(const uint8_t* in, const float* mean_row, float mean, float scale,
                                  int width, float* out) {
  for (int i = 0; i < width; ++i) {
    out[width - 1 - i] = (static_cast<float>(in[i * kStep]) - (kHasMeanRow ? mean_row[i] : mean)) * scale;
  }
}

using RowFunction = void (*)(const uint8_t*, const float*, float, float, int, float*);

template <int kStep>
RowFunction ChooseRow(bool has_mean_row, bool is_mirrored) {
  if (is_mirrored) return has_mean_row ? MirroredRow<kStep, true> : MirroredRow<kStep, false>;
  return has_mean_row ? Row<kStep, true> : Row<kStep, false>;
}

void FloatRow(const char* in, const float* mean_row, float mean, float scale, int width, bool is_mirrored,
              float* out) {
  for (int i = 0; i < width; ++i) {
    float value;
    std::memcpy(&value, in + i * sizeof(float), sizeof(float));
    out[is_mirrored ? width - 1 - i : i] = (value - (mean_row != nullptr ? mean_row[i] : mean)) * scale;
  }
}

}  // namespace

DatumTransformer::DatumTransformer(const TransformationParameter& param, bool is_training, uint64_t seed,
                                   const std::string& stream)
    : param_(param),
      is_training_(is_training),
      random_(seed, StreamOf(stream + "/transform")),
      mean_values_(param.mean_value().begin(), param.mean_value().end()) {
  Require(!param.has_mean_file() || mean_values_.empty(),
          "transform_param has both mean_file and mean_value; give one of them");
  Require(!param.force_color() || !param.force_gray(),
          "transform_param has both force_color and force_gray; give one of them");
  if (!param.has_mean_file()) return;
  BlobProto mean;
  ReadBinaryProto(param.mean_file(), &mean);
  WithContext(param.mean_file(), [&] {
    Shape shape = ShapeOf(mean);
    Require(shape.num_axes() == 3 || (shape.num_axes() == 4 && shape[0] == 1),
            "a mean image has shape 1xCxHxW, this has ", shape);
    mean_ = ReadBlobFloats(mean);
    const int first = shape.num_axes() - 3;
    mean_shape_ = Shape{shape[first], shape[first + 1], shape[first + 2]};
  });
}

Shape DatumTransformer::OutputShape(int channels, int height, int width) const {
  const int crop = static_cast<int>(param_.crop_size());
  Require(crop <= height && crop <= width, "crop_size ", crop, " is larger than the image (", height, "x", width,
          ")");
  CheckMean(channels, height, width);
  return crop > 0 ? Shape{channels, crop, crop} : Shape{channels, height, width};
}

bool DatumTransformer::Accepts(const DatumView& datum) const {
  const int crop = static_cast<int>(param_.crop_size());
  const bool fits_mean = mean_.empty() || (datum.channels == mean_shape_[0] && datum.height == mean_shape_[1] &&
                                           datum.width == mean_shape_[2]);
  const bool fits_values =
      mean_values_.size() <= 1 || static_cast<int>(mean_values_.size()) == datum.channels;
  return crop <= datum.height && crop <= datum.width && fits_mean && fits_values;
}

void DatumTransformer::CheckMean(int channels, int height, int width) const {
  if (!mean_.empty()) {
    const Shape image{channels, height, width};
    Require(mean_shape_ == image, "mean_file '", param_.mean_file(), "' has shape ", mean_shape_,
            ", the image ", image, "; compute the mean of this database");
  }
  Require(mean_values_.size() <= 1 || static_cast<int>(mean_values_.size()) == channels, "mean_value is given ",
          mean_values_.size(), " times for ", channels, " channels; give it once or once per channel");
}

DatumTransformer::Placement DatumTransformer::Place(const DatumView& datum, uint64_t draw) const {
  const auto bits = random_.Block(draw);
  Placement place{.height = datum.height, .width = datum.width};
  place.is_mirrored = param_.mirror() && (bits[0] & 1u) != 0;
  const int crop = static_cast<int>(param_.crop_size());
  if (crop == 0) return place;
  place.height = place.width = crop;
  if (is_training_) {
    place.top = static_cast<int>(ToRange(bits[1], static_cast<uint32_t>(datum.height - crop + 1)));
    place.left = static_cast<int>(ToRange(bits[2], static_cast<uint32_t>(datum.width - crop + 1)));
  } else {
    place.top = (datum.height - crop) / 2;
    place.left = (datum.width - crop) / 2;
  }
  return place;
}

void DatumTransformer::Transform(const DatumView& datum, uint64_t draw, float* out) const {
  const Placement place = Place(datum, draw);
  const bool has_mean_image = !mean_.empty();
  const RowFunction row = datum.is_interleaved ? ChooseRow<3>(has_mean_image, place.is_mirrored)
                                               : ChooseRow<1>(has_mean_image, place.is_mirrored);
  for (int c = 0; c < datum.channels; ++c) {
    const float mean = mean_values_.empty() ? 0 : mean_values_[mean_values_.size() == 1 ? 0 : c];
    for (int h = 0; h < place.height; ++h) {
      const int64_t pixel = int64_t{place.top + h} * datum.width + place.left;
      const int64_t plane = int64_t{c} * datum.height * datum.width + pixel;
      const float* mean_row = has_mean_image ? mean_.data() + plane : nullptr;
      if (datum.floats != nullptr) {
        FloatRow(datum.floats + plane * sizeof(float), mean_row, mean, param_.scale(), place.width,
                 place.is_mirrored, out);
      } else {
        row(datum.is_interleaved ? datum.pixels + pixel * 3 + c : datum.pixels + plane, mean_row, mean,
            param_.scale(), place.width, out);
      }
      out += place.width;
    }
  }
}

}  // namespace caffe::data
