// The module libcaffe_image_formats: OpenCV's image formats.
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "caffe/data/parsers/image_formats.hpp"
#include "caffe/error.hpp"
#include "caffe/export.hpp"

namespace caffe::data {
namespace {

int OpenCvFlags(ColorMode mode) {
  const int flags = mode == ColorMode::kColor  ? cv::IMREAD_COLOR
                    : mode == ColorMode::kGray ? cv::IMREAD_GRAYSCALE
                                               : cv::IMREAD_UNCHANGED;
  return mode == ColorMode::kAsStored ? flags : flags | cv::IMREAD_IGNORE_ORIENTATION;
}

class OpenCvFormats final : public ImageFormats {
 public:
  ImageExtents Decode(std::string_view file, ColorMode mode,
                      std::vector<uint8_t>* pixels) const override {
    const cv::Mat input(1, static_cast<int>(file.size()), CV_8UC1, const_cast<char*>(file.data()));
    cv::Mat decoded;
    try {
      decoded = cv::imdecode(input, OpenCvFlags(mode));
    } catch (const cv::Exception& error) {
      throw IoError(StrCat("cannot decode the image: ", error.what()));
    }
    if (decoded.empty()) {
      throw IoError(StrCat("cannot decode the image (", file.size(),
                           " bytes): broken, or of an unknown format"));
    }
    if (decoded.depth() != CV_8U) {
      throw IoError(
          "the image has more than 8 bits per channel; set force_color or force_gray, "
          "or convert it");
    }
    CAFFE_ASSERT(decoded.isContinuous());
    pixels->assign(decoded.data, decoded.data + decoded.total() * decoded.elemSize());
    return {decoded.channels(), decoded.rows, decoded.cols};
  }

  std::string Encode(const Image& image, const std::string& extension) const override {
    const cv::Mat mat(image.extents.height, image.extents.width, CV_8UC(image.extents.channels),
                      const_cast<uint8_t*>(image.pixels.data()));
    std::vector<uint8_t> file;
    try {
      if (!cv::imencode("." + extension, mat, file)) return {};
    } catch (const cv::Exception&) {
      return {};  // an unknown type
    }
    return {file.begin(), file.end()};
  }
};

}  // namespace
}  // namespace caffe::data

extern "C" CAFFE_EXPORT const caffe::data::ImageFormats* caffe_image_formats() {
  static const caffe::data::OpenCvFormats formats;
  return &formats;
}
