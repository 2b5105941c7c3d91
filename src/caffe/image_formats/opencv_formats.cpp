// Module libcaffe_image_formats: OpenCV's image formats.
#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <utility>

#include "caffe/data/parsers/image_formats.hpp"
#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"
#include "caffe/export.hpp"

namespace caffe::data {
namespace {

// Versions of OpenCV turn images of different formats upright, so our caller turns them.
int OpenCvFlags(ColorMode mode) {
  return mode == ColorMode::kColor  ? cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION
         : mode == ColorMode::kGray ? cv::IMREAD_GRAYSCALE | cv::IMREAD_IGNORE_ORIENTATION
                                    : cv::IMREAD_UNCHANGED;
}

// OpenCV reads the header of any format, and then allocates the image's memory. This allocator
// rejects an image that exceeds the file's limit. It has to be OpenCV's default allocator, because
// OpenCV falls back to the default when another one throws. It forwards all other calls, also for
// threads that are not decoding one of our images.
class LimitedAllocator final : public cv::MatAllocator {
 public:
  // While it exists, the calling thread decodes `file`.
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
    static auto* const allocator = new LimitedAllocator;  // images may outlive main()
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

// Ten distinguishable colours, blue first, as in Tableau.
cv::Scalar ColorOf(int number) {
  static constexpr unsigned char kColors[10][3] = {
      {180, 119, 31}, {14, 127, 255},  {44, 160, 44},   {40, 39, 214},  {189, 103, 148},
      {75, 86, 140},  {194, 119, 227}, {127, 127, 127}, {34, 189, 188}, {207, 190, 23}};
  const unsigned char* color = kColors[static_cast<unsigned>(number) % 10];
  return {double(color[0]), double(color[1]), double(color[2])};
}

// Draws a frame and its text, in white on the frame's colour, inside its upper left corner or as
// close to it as the image allows.
void DrawBox(const LabelledBox& box, cv::Mat* image) {
  constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
  double size = std::max(0.4, std::min(image->rows, image->cols) / 1000.0);
  const int thickness = std::max(1, static_cast<int>(size * 2));
  // Limits to OpenCV's range of coordinates, whatever values a net produces.
  const auto pixel = [](float place) {
    return std::isnan(place) ? 0 : static_cast<int>(std::clamp(place, -1e4f, 1e5f));
  };
  const cv::Point corner(pixel(box.left), pixel(box.top));
  const cv::Scalar color = ColorOf(box.color);
  cv::rectangle(*image, corner, {pixel(box.right), pixel(box.bottom)}, color, 2 * thickness);
  int below = 0;
  cv::Size text = cv::getTextSize(box.text, kFont, size, thickness, &below);
  if (text.width > image->cols) {
    size *= std::max(0.5, double(image->cols) / text.width);  // smaller text is not legible
    text = cv::getTextSize(box.text, kFont, size, thickness, &below);
  }
  const auto within = [](int place, int room) { return std::max(0, std::min(place, room)); };
  const cv::Point inside(within(corner.x, image->cols - text.width),
                         within(corner.y, image->rows - text.height - below));
  cv::rectangle(*image, inside, inside + cv::Point(text.width, text.height + below), color,
                cv::FILLED);
  cv::putText(*image, box.text, inside + cv::Point(0, text.height), kFont, size,
              cv::Scalar::all(255), thickness, cv::LINE_AA);
}

// Keeps the upper byte, as OpenCV does when decoding to colour or grey.
cv::Mat UpperBytesOf(const cv::Mat& image) {
  cv::Mat bytes(image.size(), CV_8UC(image.channels()));
  const auto* values = image.ptr<uint16_t>();
  std::transform(values, values + image.total() * image.channels(), bytes.data,
                 [](uint16_t value) { return static_cast<uint8_t>(value >> 8); });
  return bytes;
}

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
    if (decoded.depth() == CV_16U) decoded = UpperBytesOf(decoded);
    if (decoded.depth() != CV_8U) {
      throw IoError("the image's numbers are not of 8 or 16 bits; convert it to PNG");
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

  void Draw(const std::vector<LabelledBox>& boxes, Image* image) const override {
    cv::Mat mat(image->extents.height, image->extents.width, CV_8UC(image->extents.channels),
                image->pixels.data());
    for (const LabelledBox& box : boxes) DrawBox(box, &mat);
  }
};

}  // namespace
}  // namespace caffe::data

extern "C" CAFFE_EXPORT const caffe::data::ImageFormats* caffe_image_formats() {
  static const caffe::data::OpenCvFormats formats;
  return &formats;
}
