// Images are turned upright by their Exif data, in all formats alike.
#include "caffe/data/parsers/exif.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// The bytes of a number, most or least significant first.
std::string Number(uint32_t value, size_t size, bool is_little_endian) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) {
    const size_t shift = 8 * (is_little_endian ? i : size - 1 - i);
    bytes += static_cast<char>(value >> shift & 0xff);
  }
  return bytes;
}

std::string Segment(char marker, const std::string& content) {
  return std::string("\xff") + marker +
         Number(static_cast<uint32_t>(content.size() + 2), 2, /*is_little_endian=*/false) + content;
}

// A camera's fields: another field, then the orientation.
std::string ExifBlock(uint32_t orientation, bool is_little_endian = false) {
  const auto number = [&](uint32_t value, size_t size) {
    return Number(value, size, is_little_endian);
  };
  const auto field = [&](uint32_t tag, uint32_t value) {
    return number(tag, 2) + number(3, 2) + number(1, 4) + number(value, 2) + number(0, 2);
  };
  return (is_little_endian ? "II" : "MM") + number(42, 2) + number(8, 4) + number(2, 2) +
         field(0x0100, 640) + field(0x0112, orientation) + number(0, 4);
}

std::string ExifSegment(uint32_t orientation, bool is_little_endian = false) {
  return Segment('\xe1', std::string("Exif\0\0", 6) + ExifBlock(orientation, is_little_endian));
}

// An image of 24 x 40 different pixels, in several blocks.
std::string Photograph(const std::string& format = "jpg") {
  Image image{{3, 24, 40}, {}};
  for (int i = 0; i < 24 * 40; ++i) {
    const int row = i / 40, column = i % 40;
    for (const int value : {row * 10, column * 6, (row + column) * 3})
      image.pixels.push_back(static_cast<uint8_t>(value));
  }
  return EncodeImage(image, format);
}

std::string With(const std::string& segments) {
  std::string file = Photograph();
  return file.insert(2, segments);
}

// CRC-32, as in chunks of PNG.
uint32_t Checksum(const std::string& bytes) {
  uint32_t sum = ~0u;
  for (const char byte : bytes) {
    sum ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum;
}

std::string PngWith(const std::string& exif) {
  constexpr size_t kAfterHeader = 33;
  std::string file = Photograph("png");
  return file.insert(kAfterHeader, Number(static_cast<uint32_t>(exif.size()), 4, false) + "eXIf" +
                                       exif + Number(Checksum("eXIf" + exif), 4, false));
}

std::string WebpWith(const std::string& exif) {
  const std::string file =
      Photograph("webp") + "EXIF" + Number(static_cast<uint32_t>(exif.size()), 4, true) + exif;
  return "RIFF" + Number(static_cast<uint32_t>(file.size() - 8), 4, true) + file.substr(8);
}

// The photograph in each format, with this orientation.
std::vector<std::string> Photographs(uint32_t orientation) {
  return {With(ExifSegment(orientation)), PngWith(ExifBlock(orientation)),
          WebpWith(ExifBlock(orientation, true))};
}

// The pixels of the upright image, by the standard's words about row 0 and column 0.
Image Upright(const Image& stored, uint32_t orientation) {
  const int rows = stored.extents.height, columns = stored.extents.width;
  const bool swaps = orientation > 4;
  Image image{{3, swaps ? columns : rows, swaps ? rows : columns}, {}};
  for (int y = 0; y < image.extents.height; ++y) {
    for (int x = 0; x < image.extents.width; ++x) {
      int row = swaps ? x : y, column = swaps ? y : x;
      const bool is_from_below =
          orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
      const bool is_from_right =
          orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
      if (is_from_below) row = rows - 1 - row;
      if (is_from_right) column = columns - 1 - column;
      const auto pixel = stored.pixels.begin() + 3 * (row * columns + column);
      image.pixels.insert(image.pixels.end(), pixel, pixel + 3);
    }
  }
  return image;
}

TEST(ExifTest, TheOrientationIsRead) {
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    for (const bool is_little_endian : {false, true})
      EXPECT_EQ(ExifOrientation(With(ExifSegment(orientation, is_little_endian))),
                static_cast<int>(orientation));
  }
  const std::string other =
      Segment('\xe1', "http://ns.adobe.com/xap/1.0/") + Segment('\xe2', "ICC");
  EXPECT_EQ(ExifOrientation(With(other + ExifSegment(6))), 6);
}

TEST(ExifTest, WhatCannotBeReadIsUpright) {
  EXPECT_EQ(ExifOrientation(Photograph()), 1);
  EXPECT_EQ(ExifOrientation(""), 1);
  EXPECT_EQ(ExifOrientation("\x89PNG\r\n"), 1);
  EXPECT_EQ(ExifOrientation(With(ExifSegment(0))), 1);
  EXPECT_EQ(ExifOrientation(With(ExifSegment(9))), 1);
  const std::string file = With(ExifSegment(6));
  for (size_t size = 0; size < file.size(); ++size) ExifOrientation(file.substr(0, size));
  for (size_t at = 0; at < 80; ++at) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string damaged = file;
      damaged[at] = byte;
      ExifOrientation(damaged);
    }
  }
}

TEST(ExifTest, TheOrientationIsReadInAllFormats) {
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    for (const std::string& file : Photographs(orientation))
      EXPECT_EQ(ExifOrientation(file), static_cast<int>(orientation)) << ImageFormatOf(file);
  }
  EXPECT_EQ(ExifOrientation(WebpWith(std::string("Exif\0\0", 6) + ExifBlock(6))), 6);
  for (const std::string& file : Photographs(6)) {
    for (size_t size = 0; size < file.size(); ++size) ExifOrientation(file.substr(0, size));
    std::string damaged = file;
    for (size_t at = 8; at < 40; ++at) damaged[at] = '\xff';
    ExifOrientation(damaged);
  }
}

TEST(ExifTest, PicturesOfAllFormatsAreTurned) {
  const std::vector<std::string> upright = Photographs(1);
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    const std::vector<std::string> files = Photographs(orientation);
    for (size_t i = 0; i < files.size(); ++i) {
      SCOPED_TRACE(StrCat(ImageFormatOf(files[i]), " ", orientation));
      const Image stored = DecodeImage(upright[i], ColorMode::kColor);
      const Image expected = Upright(stored, orientation);
      const Image image = DecodeImage(files[i], ColorMode::kColor);
      EXPECT_EQ(image.extents, expected.extents);
      EXPECT_EQ(image.pixels, expected.pixels);
      EXPECT_EQ(DecodeImage(files[i], ColorMode::kGray).extents.height, expected.extents.height);
      EXPECT_EQ(DecodeImage(files[i], ColorMode::kAsStored).pixels, stored.pixels);
      for (const ColorMode mode : {ColorMode::kColor, ColorMode::kAsStored}) {
        ImageDecoder decoder(mode);
        EXPECT_EQ(decoder.ReadExtents(files[i]), DecodeImage(files[i], mode).extents);
      }
      const bool is_plain = i == 0 && orientation == 1;
      EXPECT_EQ(ImageDecoder(ColorMode::kColor).ExtentsOfPlainJpeg(files[i]).has_value(), is_plain);
    }
  }
}

}  // namespace
}  // namespace caffe::data
