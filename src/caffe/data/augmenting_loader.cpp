#include "caffe/data/augmenting_loader.hpp"

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Returns the image interleaved; does not copy it if it already is.
cv::Mat InterleavedMat(const ImageView& image) {
  Require(
      image.bytes != nullptr,
      "transform_param: an image of floats cannot be resized, distorted or sampled; store bytes "
      "or files");
  const ImageExtents& extents = image.extents;
  auto* bytes = const_cast<uint8_t*>(image.bytes);
  if (image.interleaved || extents.channels == 1) {
    return cv::Mat(extents.height, extents.width, CV_8UC(extents.channels), bytes);
  }
  std::vector<cv::Mat> planes;
  for (int channel = 0; channel < extents.channels; ++channel) {
    planes.emplace_back(extents.height, extents.width, CV_8UC1,
                        bytes + int64_t{channel} * extents.height * extents.width);
  }
  cv::Mat interleaved;
  cv::merge(planes, interleaved);
  return interleaved;
}

}  // namespace

RecordLoader::Sample AugmentingLoader::Load(std::string_view value, uint64_t draw) {
  Sample sample = loader_->Load(value, draw);
  picture_.image = InterleavedMat(sample.image);
  picture_.boxes = std::move(sample.boxes);
  Draws draws(random_, draw);
  try {
    for (const auto& step : steps_) step->Apply(draws, &picture_);
  } catch (const cv::Exception& error) {
    throw IoError(StrCat("the image cannot be augmented: ", error.what()));
  }
  if (!picture_.image.isContinuous()) picture_.image = picture_.image.clone();
  sample.image = {{picture_.image.channels(), picture_.image.rows, picture_.image.cols},
                  picture_.image.data,
                  nullptr,
                  /*interleaved=*/true};
  sample.boxes = picture_.boxes;
  return sample;
}

}  // namespace caffe::data
