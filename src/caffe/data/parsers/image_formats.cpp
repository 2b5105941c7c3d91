#include "caffe/data/parsers/image_formats.hpp"

#include "caffe/core/module.hpp"

namespace caffe::data {

const ImageFormats& ImageFormats::Get() {
  static const auto create = reinterpret_cast<const ImageFormats* (*)()>(LoadModule(
      "caffe_image_formats", "caffe_image_formats",
      "images other than JPEG need OpenCV's imgcodecs library; install it, or convert to JPEG"));
  return *create();
}

}  // namespace caffe::data
