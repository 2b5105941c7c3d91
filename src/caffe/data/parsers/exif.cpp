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

}  // namespace

int ExifOrientation(std::string_view file) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  constexpr uint32_t kStart = 0xffd8, kApplication = 0xffe1, kFirst = 0xffc0, kScan = 0xffda;
  const TiffNumbers numbers(file, /*is_little_endian=*/false);
  if (numbers.At(0, 2) != kStart) return kUpright;
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

}  // namespace caffe::data
