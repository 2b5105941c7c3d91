// Turns image files into a net's input, as `caffe classify` does.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// A net's input that is images: how to decode, resize, crop and scale them.
class CAFFE_EXPORT ImageInput {
 public:
  // A file's image for the net, and the part of it that the net sees.
  struct Image {
    std::vector<float> values;  // C x H x W
    int height = 0, width = 0;  // of the upright image, in pixels
    // The centre that is cropped, in pixels of the upright image.
    double seen_top = 0, seen_left = 0, seen_height = 0, seen_width = 0;
  };

  // info: mean, scale and size of the model's images (caffe/model_info.hpp)
  // channels: 3, in the order blue, green, red, or 1
  // Throws InvalidArgument if they do not fit each other.
  ImageInput(const ModelInfo& info, int channels, int height, int width);
  ~ImageInput();
  ImageInput(ImageInput&&) noexcept;
  ImageInput& operator=(ImageInput&&) noexcept;

  // `file` holds the bytes of an image file; it is rotated upright as its EXIF data say.
  // Thread-safe. Throws IoError if the image cannot be decoded.
  Image Read(std::string_view file) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace caffe
