// Decodes image files of all formats and checks their pixels.
#include "caffe/data/parsers/image_codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace caffe::data {
namespace {

using ::testing::ElementsAre;

TEST(ImageCodecTest, OfSamplesOf16BitsTheUpper8AreTaken) {
  const std::string gray("P5 2 1 65535\n\x12\xff\xfe\x01", 17);
  const Image stored = DecodeImage(gray, ColorMode::kAsStored);
  EXPECT_EQ(stored.extents, (ImageExtents{1, 1, 2}));
  EXPECT_THAT(stored.pixels, ElementsAre(0x12, 0xfe));
  EXPECT_THAT(DecodeImage(gray, ColorMode::kGray).pixels, ElementsAre(0x12, 0xfe));
  EXPECT_THAT(DecodeImage(gray, ColorMode::kColor).pixels,
              ElementsAre(0x12, 0x12, 0x12, 0xfe, 0xfe, 0xfe));
  const std::string color("P6 1 1 65535\n\1\377\2\377\3\377", 19);
  EXPECT_THAT(DecodeImage(color, ColorMode::kAsStored).pixels, ElementsAre(3, 2, 1));
}

}  // namespace
}  // namespace caffe::data
