#include "caffe/data/parsers/exif.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace caffe::data {
namespace {

constexpr int kUpright = 1;

// Reads numbers of a TIFF file, with bounds checks.
class TiffNumbers {
 public:
  TiffNumbers(std::string_view bytes, bool is_little_endian)
      : bytes_(bytes), is_little_endian_(is_little_endian) {}

  // Reads a number of 2 or 4 bytes.
  std::optional<uint32_t> At(size_t begin, size_t size) const {
    if (begin > bytes_.size() || size > bytes_.size() - begin) return std::nullopt;
    uint32_t number = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t at = begin + (is_little_endian_ ? size - 1 - i : i);
      number = number << 8 | static_cast<uint8_t>(bytes_[at]);
    }
    return number;
  }

 private:
  const std::string_view bytes_;
  const bool is_little_endian_;
};

// An Exif segment contains a small TIFF file: a header, and a directory with entries of 12 bytes.
int OrientationInBlock(std::string_view block) {
  const bool is_little_endian = block.starts_with("II");
  if (!is_little_endian && !block.starts_with("MM")) return kUpright;
  const TiffNumbers numbers(block, is_little_endian);
  const auto directory = numbers.At(4, 4);
  const auto count = directory ? numbers.At(*directory, 2) : std::nullopt;
  constexpr uint32_t kOrientation = 0x0112;
  for (uint32_t i = 0; count && i < *count; ++i) {
    const size_t entry = size_t{*directory} + 2 + size_t{12} * i;
    const auto tag = numbers.At(entry, 2);
    if (!tag) return kUpright;
    if (*tag != kOrientation) continue;
    const uint32_t orientation = numbers.At(entry + 8, 2).value_or(kUpright);
    return 1 <= orientation && orientation <= 8 ? static_cast<int>(orientation) : kUpright;
  }
  return kUpright;
}

constexpr std::string_view kExif("Exif\0\0", 6);

int OrientationInJpeg(std::string_view file) {
  constexpr uint32_t kApplication = 0xffe1, kFirst = 0xffc0, kScan = 0xffda;
  const TiffNumbers numbers(file, /*is_little_endian=*/false);
  for (size_t at = 2;;) {
    const auto marker = numbers.At(at, 2), length = numbers.At(at + 2, 2);
    if (marker == 0xffff) {  // the first byte may be repeated
      ++at;
      continue;
    }
    if (!marker || *marker < kFirst || *marker == kScan || !length || *length < 2) return kUpright;
    const std::string_view segment = file.substr(at + 4, *length - 2);
    if (*marker == kApplication && segment.starts_with(kExif))
      return OrientationInBlock(segment.substr(kExif.size()));
    at += 2 + size_t{*length};
  }
}

// Chunks have a type of 4 letters, the number of bytes of the content, and the content.
struct ChunkFormat {
  size_t first;   // where the first chunk begins
  size_t length;  // where its length is, from its beginning on
  size_t type;    // where its type is
  size_t unit;    // the content's end is rounded up to this
  size_t check;   // bytes of a checksum after the content
  bool is_little_endian;
  std::string_view exif;  // the type of the chunk with Exif data
};
constexpr ChunkFormat kPng{8, 0, 4, 1, 4, false, "eXIf"};
constexpr ChunkFormat kWebp{12, 4, 0, 2, 0, true, "EXIF"};

int OrientationInChunks(std::string_view file, const ChunkFormat& format) {
  constexpr size_t kHead = 8;
  const TiffNumbers numbers(file, format.is_little_endian);
  for (size_t at = format.first;;) {
    const auto length = numbers.At(at + format.length, 4);
    if (!length || at + kHead > file.size()) return kUpright;
    if (file.substr(at + format.type, 4) == format.exif) {
      std::string_view block = file.substr(at + kHead, *length);
      if (block.starts_with(kExif)) block.remove_prefix(kExif.size());  // some programs write it
      return OrientationInBlock(block);
    }
    at += kHead + (size_t{*length} + format.unit - 1) / format.unit * format.unit + format.check;
  }
}

}  // namespace

int ExifOrientation(std::string_view file) {
  if (file.starts_with("\xff\xd8")) return OrientationInJpeg(file);
  if (file.starts_with("\x89PNG\r\n\x1a\n")) return OrientationInChunks(file, kPng);
  if (file.starts_with("RIFF") && file.substr(0, 12).ends_with("WEBP"))
    return OrientationInChunks(file, kWebp);
  return kUpright;
}

}  // namespace caffe::data
