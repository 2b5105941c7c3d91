// DetectNetAugmentation: augments images and boxes for the training of DetectNet.
#pragma once

#include <opencv2/core.hpp>
#include <vector>

#include "caffe/data/transformers/picture.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// An object, in pixels of the image.
struct PixelBox {
  int label = 0;
  cv::Rect2f rect;
};

// Images are interleaved floats, BGR, 0 to 255. Apply() is thread-safe.
class DetectNetAugmentation {
 public:
  // `size` is the final size of all images; `means` (none, one, or one per channel) are subtracted.
  // Throws InvalidArgument for values out of range.
  DetectNetAugmentation(const DetectNetAugmentationParameter& param, cv::Size size,
                        const std::vector<float>& means);

  // For training: hue and saturation, mean, flip, scale, rotation, crop, each with its probability.
  // If no crop is drawn, and in ApplyWithoutDraws, the image is scaled to the size.
  void Apply(Draws& draws, cv::Mat* image, std::vector<PixelBox>* boxes) const;
  void ApplyWithoutDraws(cv::Mat* image, std::vector<PixelBox>* boxes) const;

 private:
  void ChangeColors(Draws& draws, cv::Mat* image) const;
  void Flip(Draws& draws, cv::Mat* image, std::vector<PixelBox>* boxes) const;
  void Scale(Draws& draws, cv::Mat* image, std::vector<PixelBox>* boxes) const;
  void Rotate(Draws& draws, cv::Mat* image, std::vector<PixelBox>* boxes) const;
  void Crop(Draws& draws, cv::Mat* image, std::vector<PixelBox>* boxes) const;

  const DetectNetAugmentationParameter param_;
  const cv::Size size_;
  cv::Scalar mean_;
};

}  // namespace caffe::data
