// Photographs are turned upright wherever OpenCV turns them.
#include "caffe/data/parsers/exif.hpp"

#include <gtest/gtest.h>

#include <string>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/parsers/image_formats.hpp"

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
std::string ExifSegment(uint32_t orientation, bool is_little_endian = false) {
  const auto number = [&](uint32_t value, size_t size) {
    return Number(value, size, is_little_endian);
  };
  const auto field = [&](uint32_t tag, uint32_t value) {
    return number(tag, 2) + number(3, 2) + number(1, 4) + number(value, 2) + number(0, 2);
  };
  return Segment('\xe1', std::string("Exif\0\0", 6) + (is_little_endian ? "II" : "MM") +
                             number(42, 2) + number(8, 4) + number(2, 2) + field(0x0100, 640) +
                             field(0x0112, orientation) + number(0, 4));
}

// An image of 24 x 40 different pixels, in several blocks.
std::string Photograph() {
  Image image{{3, 24, 40}, {}};
  for (int i = 0; i < 24 * 40; ++i) {
    const int row = i / 40, column = i % 40;
    for (const int value : {row * 10, column * 6, (row + column) * 3})
      image.pixels.push_back(static_cast<uint8_t>(value));
  }
  return EncodeJpegImage(image, 95);
}

std::string With(const std::string& segments) {
  std::string file = Photograph();
  return file.insert(2, segments);
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

TEST(ExifTest, PicturesAreTurnedAsOpenCvDoes) {
  const Image stored = DecodeImage(Photograph(), ColorMode::kColor);
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    const std::string file = With(ExifSegment(orientation));
    for (const ColorMode mode : {ColorMode::kColor, ColorMode::kGray, ColorMode::kAsStored}) {
      std::vector<uint8_t> pixels;
      const ImageExtents extents = ImageFormats::Get().Decode(file, mode, &pixels);
      const Image image = DecodeImage(file, mode);
      EXPECT_EQ(image.extents, extents) << orientation;
      EXPECT_EQ(image.pixels, pixels) << orientation;
      ImageDecoder decoder(mode);
      EXPECT_EQ(decoder.ReadExtents(file), extents) << orientation;
      const bool is_turned = mode != ColorMode::kAsStored && orientation > 1;
      EXPECT_EQ(is_turned && orientation > 4, extents.height > extents.width);
      if (mode == ColorMode::kColor) {
        EXPECT_EQ(decoder.ExtentsOfPlainJpeg(file).has_value(), !is_turned);
        EXPECT_EQ(image.pixels == stored.pixels, !is_turned);
      }
      if (mode == ColorMode::kAsStored) {
        EXPECT_EQ(image.pixels, stored.pixels);
      }
    }
  }
}

}  // namespace
}  // namespace caffe::data
