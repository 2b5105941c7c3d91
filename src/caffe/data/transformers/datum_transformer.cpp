#include "caffe/data/transformers/datum_transformer.hpp"

#include <algorithm>
#include <array>

#include "caffe/data/transformers/transform_rows.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"

namespace caffe::data {
namespace {

// Pixels split at a time, small enough for the first-level cache.
constexpr int kSplitPixels = 512;

void RefuseUnknownOptions(const TransformationParameter& param) {
  const auto refuse = [](bool is_set, const char* field) {
    if (is_set) {
      throw Unsupported(StrCat("transform_param.", field,
                               " is not implemented for this layer; "
                               "remove it, or resize while converting the data"));
    }
  };
  refuse(param.img_rand_resize_lower() > 0 || param.img_rand_resize_upper() > 0,
         "img_rand_resize_lower and img_rand_resize_upper");
  refuse(param.rand_resize_ratio_upper() > 1, "rand_resize_ratio_upper");
  refuse(param.vertical_stretch_lower() != 1 || param.vertical_stretch_upper() != 1,
         "vertical_stretch_lower and vertical_stretch_upper");
  refuse(param.horizontal_stretch_lower() != 1 || param.horizontal_stretch_upper() != 1,
         "horizontal_stretch_lower and horizontal_stretch_upper");
  refuse(param.has_resize_param(), "resize_param");
  refuse(param.has_noise_param(), "noise_param");
  refuse(param.has_distort_param(), "distort_param");
  refuse(param.has_expand_param(), "expand_param");
  refuse(param.crop_h() > 0 || param.crop_w() > 0, "crop_h and crop_w");
}

}  // namespace

DatumTransformer::DatumTransformer(const TransformationParameter& param, bool train, uint64_t seed,
                                   const std::string& stream)
    : param_(param),
      train_(train),
      random_(param.random_seed() >= 0 ? static_cast<uint64_t>(param.random_seed()) : seed,
              StreamOf(stream)) {
  Require(!param.force_color() || !param.force_gray(),
          "transform_param sets both force_color and force_gray; keep one");
  Require(!param.has_mean_file() || param.mean_value_size() == 0,
          "transform_param sets both mean_file and mean_value; keep one");
  RefuseUnknownOptions(param);
  if (!param.has_mean_file()) return;
  BlobProto mean;
  ReadBinaryProto(param.mean_file(), &mean);
  WithContext("mean_file '" + param.mean_file() + "'", [&] {
    const Shape shape = ShapeOf(mean);
    const int axes = shape.num_axes();
    Require(axes == 3 || (axes == 4 && shape[0] == 1), "a mean of shape ", shape,
            "; it has to be one image (1xCxHxW)");
    mean_image_ = ReadBlobFloats(mean);
    mean_extents_ = {static_cast<int>(shape[axes - 3]), static_cast<int>(shape[axes - 2]),
                     static_cast<int>(shape[axes - 1])};
  });
}

ColorMode DatumTransformer::color_mode() const {
  if (param_.force_color()) return ColorMode::kColor;
  return param_.force_gray() ? ColorMode::kGray : ColorMode::kAsStored;
}

ImageExtents DatumTransformer::OutputExtents(const ImageExtents& image) const {
  const int crop = static_cast<int>(param_.crop_size());
  if (crop > image.height || crop > image.width) {
    throw InvalidArgument(StrCat("crop_size ", crop, " is larger than the image (", image.height,
                                 "x", image.width, "); lower it or resize the images"));
  }
  if (!mean_image_.empty() && !(image == mean_extents_)) {
    throw InvalidArgument(StrCat("mean_file '", param_.mean_file(), "' holds a mean of ",
                                 mean_extents_, ", but the image before cropping is ", image,
                                 "; compute the mean of this data, or use mean_value"));
  }
  const int means = param_.mean_value_size();
  if (means > 1 && means != image.channels) {
    throw InvalidArgument(StrCat("transform_param has ", means,
                                 " mean_value entries, but the "
                                 "image has ",
                                 image.channels, " channels; give one, or one per channel"));
  }
  if (crop == 0) return image;
  return {image.channels, crop, crop};
}

Shape DatumTransformer::OutputShape(int channels, int height, int width) const {
  const ImageExtents extents = OutputExtents({channels, height, width});
  return Shape{1, extents.channels, extents.height, extents.width};
}

DatumTransformer::Window DatumTransformer::ChooseWindow(const ImageExtents& image,
                                                        uint64_t draw_index) const {
  Window window;
  const int crop = static_cast<int>(param_.crop_size());
  const bool draws_place = train_ && crop > 0;
  std::array<uint32_t, 4> draws{};
  if (param_.mirror() || draws_place) draws = random_.Block(draw_index);
  window.mirror = param_.mirror() && (draws[0] >> 31) != 0;
  if (crop == 0) return window;
  const int spare_height = image.height - crop;
  const int spare_width = image.width - crop;
  if (train_) {
    window.top = static_cast<int>(ToRange(draws[1], static_cast<uint32_t>(spare_height) + 1));
    window.left = static_cast<int>(ToRange(draws[2], static_cast<uint32_t>(spare_width) + 1));
  } else {
    window.top = spare_height / 2;
    window.left = spare_width / 2;
  }
  return window;
}

float DatumTransformer::MeanOf(int channel) const {
  if (param_.mean_value_size() == 0) return 0;
  return param_.mean_value(param_.mean_value_size() == 1 ? 0 : channel);
}

const float* DatumTransformer::MeanRow(const ImageExtents& image, const Window& window, int channel,
                                       int row) const {
  if (mean_image_.empty()) return nullptr;
  const int64_t source_row = int64_t{channel} * image.height + window.top + row;
  return mean_image_.data() + source_row * image.width + window.left;
}

template <typename T>
void DatumTransformer::TransformPlanes(const T* pixels, const ImageExtents& image,
                                       const Window& window, float* out) const {
  const ImageExtents output = OutputExtents(image);
  // Without crop and mirror a plane is one long row.
  const bool is_whole = output == image && !window.mirror;
  const int rows = is_whole ? 1 : output.height;
  const int columns = is_whole ? image.height * image.width : output.width;
  RowTransform transform{.scale = param_.scale(), .mirror = window.mirror};
  for (int channel = 0; channel < image.channels; ++channel) {
    transform.mean_value = MeanOf(channel);
    for (int row = 0; row < rows; ++row) {
      const int64_t source_row = int64_t{channel} * image.height + window.top + row;
      transform.mean_row = MeanRow(image, window, channel, row);
      TransformRow(transform, pixels + source_row * image.width + window.left, columns, out);
      out += columns;
    }
  }
}

void DatumTransformer::TransformInterleaved(const uint8_t* pixels, const ImageExtents& image,
                                            const Window& window, float* out) const {
  const ImageExtents output = OutputExtents(image);
  const int channels = image.channels;
  const int64_t plane = int64_t{output.height} * output.width;
  std::array<std::array<uint8_t, kSplitPixels>, 4> split;
  CAFFE_ASSERT(channels <= static_cast<int>(split.size()), channels);
  RowTransform transform{.scale = param_.scale(), .mirror = window.mirror};
  for (int row = 0; row < output.height; ++row) {
    const int64_t first_pixel = int64_t{window.top + row} * image.width + window.left;
    for (int start = 0; start < output.width; start += kSplitPixels) {
      const int count = std::min(kSplitPixels, output.width - start);
      const uint8_t* source = pixels + (first_pixel + start) * channels;
      if (channels == 3) {
        SplitThreeChannels(source, count, split[0].data(), split[1].data(), split[2].data());
      } else {
        for (int channel = 0; channel < channels; ++channel) {
          for (int i = 0; i < count; ++i) split[channel][i] = source[i * channels + channel];
        }
      }
      const int column = window.mirror ? output.width - start - count : start;
      for (int channel = 0; channel < channels; ++channel) {
        transform.mean_value = MeanOf(channel);
        const float* mean_row = MeanRow(image, window, channel, row);
        transform.mean_row = mean_row == nullptr ? nullptr : mean_row + start;
        TransformRow(transform, split[channel].data(), count,
                     out + channel * plane + int64_t{row} * output.width + column);
      }
    }
  }
}

void DatumTransformer::Transform(const ImageView& image, uint64_t draw_index, float* out) const {
  OutputExtents(image.extents);  // throws when crop or mean do not fit
  const Window window = ChooseWindow(image.extents, draw_index);
  if (image.floats != nullptr) {
    TransformPlanes(image.floats, image.extents, window, out);
  } else if (image.interleaved && image.extents.channels > 1) {
    TransformInterleaved(image.bytes, image.extents, window, out);
  } else {
    TransformPlanes(image.bytes, image.extents, window, out);
  }
}

}  // namespace caffe::data
