#include "caffe/data/transformers/inference_transform.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

TransformationParameter WithCrop(TransformationParameter param, const ImageExtents& input) {
  param.set_crop_h(static_cast<uint32_t>(input.height));
  param.set_crop_w(static_cast<uint32_t>(input.width));
  return param;
}

}  // namespace

InferenceTransform::InferenceTransform(const ResizeParameter& resize,
                                       const TransformationParameter& param, const BlobProto* mean,
                                       const ImageExtents& input)
    : input_(input),
      resize_(resize),
      transformer_(WithCrop(param, input), /*train=*/false, /*seed=*/0, "images", mean) {
  Require(input.channels == 1 || input.channels == 3, "the net reads ", input.channels,
          " channels; an image has 1 or 3");
  CheckResize();
  const MeanImage image = transformer_.Mean(input.channels);
  if (image.extents.height > 1 || image.extents.width > 1) mean_ = image.extents;
  if (mean_.count() > 0) CheckMean(mean == nullptr ? param.mean_file() : "of the weights");
}

void InferenceTransform::CheckResize() const {
  const int height = static_cast<int>(resize_.height()), width = static_cast<int>(resize_.width());
  if (keeps_proportions()) {
    Require(height >= std::min(input_.height, input_.width), "the shorter side is ", height,
            ", less than the net's input of ", input_.height, "x", input_.width);
  } else if (height > 0) {
    Require(height >= input_.height && width >= input_.width, "the model's images are resized to ",
            height, "x", width, ", smaller than the net's input of ", input_.height, "x",
            input_.width, "; correct `resize` in model_info of the net, or give the shorter side");
  }
}

void InferenceTransform::CheckMean(const std::string& name) const {
  Require(mean_.height >= input_.height && mean_.width >= input_.width, "mean image '", name,
          "' is of ", mean_.height, "x", mean_.width, ", smaller than the net's input of ",
          input_.height, "x", input_.width,
          "; give the mean image that belongs to this net, or mean values");
  Require(!keeps_proportions(),
          "images that are resized by their shorter side have different sizes, so one mean image "
          "cannot be subtracted from all; use mean values");
}

ColorMode InferenceTransform::color_mode() const {
  return input_.channels == 1 ? ColorMode::kGray : ColorMode::kColor;
}

InferenceTransform::Size InferenceTransform::SizeBeforeCrop(const ImageExtents& image) const {
  if (mean_.count() > 0) return {mean_.height, mean_.width};
  if (keeps_proportions()) {
    // The result must cover the net's input, also for narrow images.
    const double factor =
        std::max({static_cast<double>(resize_.height()) / std::min(image.height, image.width),
                  static_cast<double>(input_.height) / image.height,
                  static_cast<double>(input_.width) / image.width});
    return {static_cast<int>(std::lround(image.height * factor)),
            static_cast<int>(std::lround(image.width * factor))};
  }
  if (resize_.height() > 0)
    return {static_cast<int>(resize_.height()), static_cast<int>(resize_.width())};
  return {input_.height, input_.width};
}

SeenPart InferenceTransform::PartSeen(const ImageExtents& image) const {
  const Size size = SizeBeforeCrop(image);
  const double height = double{1} * image.height / size.height;  // of one resized pixel
  const double width = double{1} * image.width / size.width;
  const int top = (size.height - input_.height) / 2, left = (size.width - input_.width) / 2;
  return {top * height, left * width, input_.height * height, input_.width * width};
}

std::vector<float> InferenceTransform::Transform(const Image& image) const {
  Require(image.extents.channels == input_.channels, "it has ", image.extents.channels,
          " channels, and the net reads ", input_.channels);
  const Size size = SizeBeforeCrop(image.extents);
  std::vector<float> values(static_cast<size_t>(input_.count()));
  const bool fits = image.extents.height == size.height && image.extents.width == size.width;
  const Image resized = fits ? Image{} : ResizeImage(image.view(), size.height, size.width);
  transformer_.Transform((fits ? image : resized).view(), /*draw_index=*/0, values.data());
  return values;
}

}  // namespace caffe::data
