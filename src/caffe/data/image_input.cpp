#include "caffe/image_input.hpp"

#include "caffe/data/transformers/inference_transform.hpp"

namespace caffe {
namespace {

TransformationParameter TransformOf(const ModelInfo& info) {
  TransformationParameter param;
  param.set_scale(info.scale());
  *param.mutable_mean_value() = info.mean_value();
  return param;
}

}  // namespace

struct ImageInput::Impl {
  data::InferenceTransform transform;
};

ImageInput::ImageInput(const ModelInfo& info, int channels, int height, int width)
    : impl_(new Impl{data::InferenceTransform(info.resize(), TransformOf(info),
                                              info.has_mean() ? &info.mean() : nullptr,
                                              {channels, height, width})}) {}

ImageInput::~ImageInput() = default;
ImageInput::ImageInput(ImageInput&&) noexcept = default;
ImageInput& ImageInput::operator=(ImageInput&&) noexcept = default;

ImageInput::Image ImageInput::Read(std::string_view file) const {
  const data::Image image = data::DecodeImage(file, impl_->transform.color_mode());
  const data::SeenPart seen = impl_->transform.PartSeen(image.extents);
  return {impl_->transform.Transform(image),
          image.extents.height,
          image.extents.width,
          seen.top,
          seen.left,
          seen.height,
          seen.width};
}

}  // namespace caffe
