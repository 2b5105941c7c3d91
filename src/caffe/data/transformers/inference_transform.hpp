// From an image to a net's input, as `caffe classify` computes it.
#pragma once

#include <vector>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/transformers/datum_transformer.hpp"
#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// The part of an image that the net's input covers, in pixels of the image.
struct SeenPart {
  double top = 0, left = 0, height = 0, width = 0;
};

// Resizes an image, crops its centre to the input's extents, and computes (pixel - mean) * scale.
// Without random choices, so its methods are thread-safe.
class CAFFE_EXPORT InferenceTransform {
 public:
  // resize: WARP to a size, FIT_SMALL_SIZE, or empty: stretch to the input, or to the mean image
  // param: mean and scale; its crop is replaced
  // mean: replaces param's mean file; may be null
  // Throws InvalidArgument if these do not fit the input.
  InferenceTransform(const ResizeParameter& resize, const TransformationParameter& param,
                     const BlobProto* mean, const ImageExtents& input);

  // How to decode images for this input.
  ColorMode color_mode() const;
  SeenPart PartSeen(const ImageExtents& image) const;
  // C x H x W. Throws InvalidArgument for an image with another number of channels.
  std::vector<float> Transform(const Image& image) const;

 private:
  struct Size {
    int height = 0, width = 0;
  };
  void CheckResize() const;
  void CheckMean(const std::string& name) const;
  bool keeps_proportions() const {
    return resize_.resize_mode() == ResizeParameter::FIT_SMALL_SIZE;
  }
  // The size to which an image is resized before its centre is cropped.
  Size SizeBeforeCrop(const ImageExtents& image) const;

  const ImageExtents input_;
  const ResizeParameter resize_;
  const DatumTransformer transformer_;
  ImageExtents mean_;  // of the mean image, if there is one
};

}  // namespace caffe::data
