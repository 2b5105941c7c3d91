#include "caffe/shape.hpp"

#include <gtest/gtest.h>

#include "caffe/error.hpp"

namespace caffe {
namespace {

TEST(ShapeTest, CountsElementsOfAxisRanges) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(shape.count(), 120);
  EXPECT_EQ(shape.count(2), 20);
  EXPECT_EQ(shape.count(1, 3), 12);
  EXPECT_EQ(Shape{}.count(), 1);
}

TEST(ShapeTest, NegativeAxesCountFromTheEnd) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape.CanonicalAxis(-3), 0);
  EXPECT_THROW(shape.CanonicalAxis(3), InvalidArgument);
  EXPECT_THROW(shape.CanonicalAxis(-4), InvalidArgument);
}

TEST(ShapeTest, PrintsExtentsJoinedByX) {
  EXPECT_EQ((Shape{64, 3, 224, 224}.ToString()), "64x3x224x224");
  EXPECT_EQ(Shape{}.ToString(), "scalar");
}

TEST(ShapeTest, RejectsCountsThatOverflowCaffesFormats) {
  EXPECT_THROW((Shape{1 << 16, 1 << 16}), InvalidArgument);
  EXPECT_THROW((Shape{2, -1}), InvalidArgument);
  EXPECT_EQ((Shape{0, 1 << 16, 1 << 16}.count()), 0);
}

TEST(ShapeTest, RejectsEmptyShapesWhosePartsOverflow) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  EXPECT_EQ((Shape{0, kMost, kMost}.count(1)), kMost * kMost);
  EXPECT_THROW((Shape{0, kMost + 1}), InvalidArgument);
  EXPECT_THROW((Shape{0, kMost, kMost, 4}), InvalidArgument);
  EXPECT_THROW((Shape{kMost, kMost, kMost, 0}), InvalidArgument);
}

}  // namespace
}  // namespace caffe
