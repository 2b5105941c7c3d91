// The module libcaffe_image_formats: OpenCV's image formats.
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <utility>

#include "caffe/data/parsers/image_formats.hpp"
#include "caffe/decode_limit.hpp"
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

// OpenCV reads the header of whatever format it is, and then takes the image's memory: here, where
// more than the file may take is refused. It has to be OpenCV's default allocator, because OpenCV
// falls back to that one when another throws. It passes all else on, and so does it for threads
// that decode no image of ours.
class LimitedAllocator final : public cv::MatAllocator {
 public:
  // What the calling thread decodes, until its end.
  class Scope {
   public:
    explicit Scope(std::string_view file)
        : outer_(std::exchange(decoded_file_bytes, file.size())) {}
    ~Scope() { decoded_file_bytes = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const size_t outer_;
  };

  static void Install() {
    static auto* const allocator = new LimitedAllocator;  // for images that outlive main()
    cv::Mat::setDefaultAllocator(allocator);
  }

  cv::UMatData* allocate(int dims, const int* sizes, int type, void* data, size_t* step,
                         cv::AccessFlag flags, cv::UMatUsageFlags usage) const override {
    if (decoded_file_bytes > 0 && data == nullptr) Check(dims, sizes, type);
    return standard_->allocate(dims, sizes, type, data, step, flags, usage);
  }
  bool allocate(cv::UMatData* data, cv::AccessFlag flags, cv::UMatUsageFlags usage) const override {
    return standard_->allocate(data, flags, usage);
  }
  void deallocate(cv::UMatData* data) const override { standard_->deallocate(data); }

 private:
  static void Check(int dims, const int* sizes, int type) {
    uint64_t bytes = CV_ELEM_SIZE(type);
    for (int i = 0; i < dims; ++i) bytes *= static_cast<uint64_t>(sizes[i]);
    CheckDecodedBytes(bytes, decoded_file_bytes, "an image of ", sizes[1], "x", sizes[0]);
  }

  static thread_local size_t decoded_file_bytes;  // 0: the thread decodes no file

  cv::MatAllocator* const standard_ = cv::Mat::getDefaultAllocator();
};

thread_local size_t LimitedAllocator::decoded_file_bytes = 0;

class OpenCvFormats final : public ImageFormats {
 public:
  OpenCvFormats() { LimitedAllocator::Install(); }

  ImageExtents Decode(std::string_view file, ColorMode mode,
                      std::vector<uint8_t>* pixels) const override {
    const cv::Mat input(1, static_cast<int>(file.size()), CV_8UC1, const_cast<char*>(file.data()));
    cv::Mat decoded;
    const LimitedAllocator::Scope limited(file);
    try {
      decoded = cv::imdecode(input, OpenCvFlags(mode));
    } catch (const cv::Exception& error) {
      if (error.code == cv::Error::StsNoMem) throw std::bad_alloc();
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
    } catch (const cv::Exception& error) {
      if (error.code == cv::Error::StsNoMem) throw std::bad_alloc();
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
