#include "caffe/data/parsers/image_codec.hpp"

#include <turbojpeg.h>

#include <cstring>
#include <limits>
#include <new>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "caffe/data/parsers/exif.hpp"
#include "caffe/data/parsers/gif.hpp"
#include "caffe/data/parsers/image_formats.hpp"
#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// A single-colour image takes one or two bits per 8x8 block. A header that promises far more pixels
// than the file can hold must not cause gigabytes to be allocated before decoding fails.
constexpr int64_t kMostPixelsPerByte = 16384;

struct JpegHeader {
  int height = 0;
  int width = 0;
  int subsampling = 0;
  int color_space = 0;

  // CMYK files need a conversion that libjpeg-turbo does not support.
  bool is_cmyk() const { return color_space == TJCS_CMYK || color_space == TJCS_YCCK; }
  bool is_gray() const { return color_space == TJCS_GRAY; }
  int components() const { return is_gray() ? 1 : 3; }
};

const unsigned char* BytesOf(std::string_view file) {
  return reinterpret_cast<const unsigned char*>(file.data());
}

// True if the image has several scans, for which libjpeg-turbo keeps the coefficients of the whole
// image. Determined from the markers before the first scan.
bool HasSeveralScans(std::string_view file) {
  const unsigned char* bytes = BytesOf(file);
  bool is_progressive = false;
  int components = 0;
  for (size_t at = 2; at + 10 <= file.size() && bytes[at] == 0xff;) {
    const int marker = bytes[at + 1];
    if (marker == 0xff) {  // may be repeated
      ++at;
      continue;
    }
    constexpr int kScan = 0xda;
    if (marker == kScan) return is_progressive || bytes[at + 4] < components;
    const bool is_frame = 0xc0 <= marker && marker <= 0xcf && marker != 0xc4 && marker != 0xcc;
    if (is_frame) {
      is_progressive = (marker & 3) == 2;
      components = bytes[at + 9];
    }
    at += 2 + (bytes[at + 2] << 8 | bytes[at + 3]);
  }
  return false;
}

// Out of memory is std::bad_alloc, because the image is not at fault and must not be skipped.
[[noreturn]] void ThrowJpegError(const std::string& what, const std::string& reason) {
  for (const char* shortage : {"Memory allocation failure", "Insufficient memory"}) {
    if (reason.find(shortage) != std::string::npos) throw std::bad_alloc();
  }
  throw IoError(what + ": " + reason);
}

cv::Mat MatOf(const ImageView& image) {
  return cv::Mat(image.extents.height, image.extents.width, CV_8UC(image.extents.channels),
                 const_cast<uint8_t*>(image.bytes));
}

// True if the orientation swaps rows and columns: those from 5 on.
bool SwapsAxes(int orientation) {
  return orientation >= 5;
}

Image ImageOf(const cv::Mat& mat) {
  CAFFE_ASSERT(mat.isContinuous() && mat.depth() == CV_8U);
  return {{mat.channels(), mat.rows, mat.cols},
          std::vector<uint8_t>(mat.data, mat.data + mat.total() * mat.elemSize())};
}

}  // namespace

struct ImageDecoder::Impl {
  explicit Impl(ColorMode wanted) : mode(wanted) { StartJpeg(); }

  void StartJpeg() {
    jpeg.reset(tjInitDecompress());
    if (!jpeg) ThrowJpegError("cannot start libjpeg-turbo", tjGetErrorStr2(nullptr));
  }

  // After an error in a header, libjpeg-turbo would continue there with the next image.
  [[noreturn]] void FailJpeg() {
    const std::string reason = tjGetErrorStr2(jpeg.get());
    StartJpeg();
    ThrowJpegError("broken JPEG image", reason);
  }

  JpegHeader ReadJpegHeader(std::string_view file) {
    JpegHeader header;
    const int status =
        tjDecompressHeader3(jpeg.get(), BytesOf(file), file.size(), &header.width, &header.height,
                            &header.subsampling, &header.color_space);
    if (status != 0 && tjGetErrorCode(jpeg.get()) != TJERR_WARNING) FailJpeg();
    if (header.width <= 0 || header.height <= 0) FailJpeg();  // truncated within the header
    const int64_t pixels = int64_t{header.width} * header.height;
    if (pixels > static_cast<int64_t>(file.size()) * kMostPixelsPerByte) {
      throw IoError(StrCat("broken JPEG image: ", file.size(), " bytes cannot hold ", header.width,
                           "x", header.height, " pixels"));
    }
    return header;
  }

  int ChannelsOf(const JpegHeader& header) const {
    if (mode == ColorMode::kAsStored) return header.is_gray() ? 1 : 3;
    return mode == ColorMode::kColor ? 3 : 1;
  }

  // 1 if pixels are requested as stored.
  int OrientationOf(std::string_view file) const {
    return mode == ColorMode::kAsStored ? 1 : ExifOrientation(file);
  }

  ImageExtents ExtentsOf(const JpegHeader& header, std::string_view file) const {
    const ImageExtents stored{ChannelsOf(header), header.height, header.width};
    if (!SwapsAxes(OrientationOf(file))) return stored;
    return {stored.channels, stored.width, stored.height};
  }

  ImageView Upright(const ImageView& image, int orientation) {
    if (orientation == 1) return image;
    cv::Mat transposed = MatOf(image);
    if (SwapsAxes(orientation)) cv::transpose(MatOf(image), transposed);
    const int turn = (orientation - 1) % 4;
    if (turn == 0) {
      turned = transposed;
    } else {
      constexpr int kColumns = 1, kRows = 0, kBoth = -1;
      cv::flip(transposed, turned, turn == 1 ? kColumns : turn == 2 ? kBoth : kRows);
    }
    return {{image.extents.channels, turned.rows, turned.cols},
            turned.data,
            nullptr,
            /*interleaved=*/true};
  }

  ImageView DecodeJpeg(std::string_view file, const JpegHeader& header) {
    const int channels = ChannelsOf(header);
    const ImageExtents extents{channels, header.height, header.width};
    const uint64_t area = static_cast<uint64_t>(header.height) * header.width;
    const uint64_t coefficients = HasSeveralScans(file) ? area * header.components() * 2 : 0;
    CheckDecodedBytes(area * channels + coefficients, file.size(), "an image of ", header.width,
                      "x", header.height);
    if (pixels.size() < static_cast<size_t>(extents.count())) pixels.resize(extents.count());
    if (tjDecompress2(jpeg.get(), BytesOf(file), file.size(), pixels.data(), header.width,
                      /*pitch=*/header.width * channels, header.height,
                      channels == 3 ? TJPF_BGR : TJPF_GRAY, /*flags=*/0) != 0) {
      // Many data sets contain files with stray bytes, which are harmless; missing pixels are not.
      const bool is_harmless = tjGetErrorCode(jpeg.get()) == TJERR_WARNING &&
                               std::strstr(tjGetErrorStr2(jpeg.get()), "remature end") == nullptr;
      if (!is_harmless) FailJpeg();
    }
    return Upright({extents, pixels.data(), nullptr, /*interleaved=*/true}, OrientationOf(file));
  }

  ImageView DecodeOther(std::string_view file) {
    if (IsGif(file)) return DecodeAnyGif(file);
    const ImageExtents extents = ImageFormats::Get().Decode(file, mode, &pixels);
    return Upright({extents, pixels.data(), nullptr, /*interleaved=*/true}, OrientationOf(file));
  }

  ImageView DecodeAnyGif(std::string_view file) {
    ImageExtents extents = DecodeGif(file, &pixels);
    const ImageView color{extents, pixels.data(), nullptr, /*interleaved=*/true};
    if (mode != ColorMode::kGray) return color;
    cv::cvtColor(MatOf(color), turned, cv::COLOR_BGR2GRAY);
    extents.channels = 1;
    return {extents, turned.data, nullptr, /*interleaved=*/true};
  }

  const ColorMode mode;
  struct JpegCloser {
    void operator()(void* handle) const { tjDestroy(handle); }
  };
  std::unique_ptr<void, JpegCloser> jpeg;
  std::vector<uint8_t> pixels;
  cv::Mat turned;  // rotated, or converted to grey
};

ImageDecoder::ImageDecoder(ColorMode mode) : impl_(std::make_unique<Impl>(mode)) {}
ImageDecoder::~ImageDecoder() = default;

ImageView ImageDecoder::Decode(std::string_view file) {
  if (file.empty()) throw IoError("cannot decode the image: it has no bytes");
  if (IsJpeg(file)) {
    const JpegHeader header = impl_->ReadJpegHeader(file);
    if (!header.is_cmyk()) return impl_->DecodeJpeg(file, header);
  }
  return impl_->DecodeOther(file);
}

ImageExtents ImageDecoder::ReadExtents(std::string_view file) {
  if (IsJpeg(file)) {
    const JpegHeader header = impl_->ReadJpegHeader(file);
    if (!header.is_cmyk()) return impl_->ExtentsOf(header, file);
  }
  return impl_->DecodeOther(file).extents;
}

std::optional<ImageExtents> ImageDecoder::ExtentsOfPlainJpeg(std::string_view file) {
  // Checks the end marker, because not every decoder notices a truncated file.
  if (!IsJpeg(file) || !file.ends_with("\xff\xd9") || HasSeveralScans(file)) return std::nullopt;
  try {
    const JpegHeader header = impl_->ReadJpegHeader(file);
    const bool is_plain = header.is_gray() || header.color_space == TJCS_YCbCr;
    const ImageExtents extents{impl_->ChannelsOf(header), header.height, header.width};
    if (!is_plain || extents.channels != header.components()) return std::nullopt;
    if (impl_->OrientationOf(file) != 1) return std::nullopt;
    CheckDecodedBytes(static_cast<uint64_t>(extents.count()), file.size(), "an image");
    return extents;
  } catch (const IoError&) {
    return std::nullopt;
  }
}

bool IsJpeg(std::string_view file) {
  return file.substr(0, 3) == "\xff\xd8\xff";
}

std::string ImageFormatOf(std::string_view file) {
  if (IsJpeg(file)) return "jpg";
  if (file.starts_with("\x89PNG\r\n")) return "png";
  if (file.starts_with("BM")) return "bmp";
  if (IsGif(file)) return "gif";
  if (file.starts_with("II*") || file.starts_with(std::string_view("MM\0*", 4))) return "tiff";
  if (file.starts_with("RIFF") && file.substr(0, 12).ends_with("WEBP")) return "webp";
  return "";
}

Image DecodeImage(std::string_view file, ColorMode mode) {
  ImageDecoder decoder(mode);
  const ImageView view = decoder.Decode(file);
  return {view.extents, std::vector<uint8_t>(view.bytes, view.bytes + view.extents.count())};
}

Image ResizeImage(const ImageView& image, int height, int width) {
  // Limit of a blob.
  constexpr int64_t kMostValues = std::numeric_limits<int>::max();
  Require(int64_t{height} * width <= kMostValues / image.extents.channels,
          "cannot resize the image from ", image.extents.height, "x", image.extents.width, " to ",
          height, "x", width, ": it would have more than ", kMostValues, " values");
  cv::Mat resized;
  try {
    cv::resize(MatOf(image), resized, cv::Size(width, height), 0, 0, cv::INTER_LINEAR);
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) throw std::bad_alloc();
    throw InvalidArgument(StrCat("cannot resize the image from ", image.extents.height, "x",
                                 image.extents.width, " to ", height, "x", width, ": ",
                                 error.what()));
  }
  return ImageOf(resized);
}

std::string EncodeJpegImage(const Image& image, int quality) {
  const bool is_gray = image.extents.channels == 1;
  const std::unique_ptr<void, int (*)(tjhandle)> encoder(tjInitCompress(), tjDestroy);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg-turbo's type
  const int status =
      !encoder ? -1
               : tjCompress2(encoder.get(), image.pixels.data(), image.extents.width, /*pitch=*/0,
                             image.extents.height, is_gray ? TJPF_GRAY : TJPF_BGR, &bytes, &size,
                             is_gray ? TJSAMP_GRAY : TJSAMP_420, quality, /*flags=*/0);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  if (status != 0) ThrowJpegError("cannot encode a JPEG image", tjGetErrorStr2(encoder.get()));
  return {reinterpret_cast<const char*>(bytes), size};
}

std::string EncodeImage(const Image& image, const std::string& extension) {
  constexpr int kQuality = 95;  // as in OpenCV
  const bool is_jpeg = extension == "jpg" || extension == "jpeg";
  const bool has_jpeg_channels = image.extents.channels == 1 || image.extents.channels == 3;
  std::string file = is_jpeg && has_jpeg_channels ? EncodeJpegImage(image, kQuality)
                                                  : ImageFormats::Get().Encode(image, extension);
  if (file.empty()) {
    throw InvalidArgument(StrCat("cannot encode an image of ", image.extents, " as '", extension,
                                 "'; use jpg or png"));
  }
  return file;
}

}  // namespace caffe::data
