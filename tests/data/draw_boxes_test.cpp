#include "caffe/data/parsers/draw_boxes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace caffe::data {
namespace {

// The number of values of a black image that change.
int64_t Drawn(float left, float top, int width) {
  Image image{{3, 100, width}, std::vector<uint8_t>(static_cast<size_t>(3 * 100) * width)};
  DrawBoxes({{left, top, left, top, "bicycle 99%", 1}}, &image);
  return std::ranges::count_if(image.pixels, [](uint8_t value) { return value != 0; });
}

TEST(DrawBoxesTest, TextIsMovedIntoTheImage) {
  const int64_t whole = Drawn(40, 40, 300);
  EXPECT_GE(whole, 1000);
  for (const auto& [left, top] :
       {std::pair{295.f, 40.f}, {40.f, 98.f}, {299.f, 99.f}, {-5.f, -5.f}}) {
    EXPECT_GE(Drawn(left, top, 300), whole * 9 / 10) << left << " " << top;
  }
  EXPECT_GE(Drawn(0, 0, 60), whole / 3);  // narrower than the text, which is made smaller
}

}  // namespace
}  // namespace caffe::data
