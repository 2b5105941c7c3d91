#include "caffe/distributed/gradient_buckets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;

std::vector<GradientSize> FloatGradients(const std::vector<size_t>& bytes) {
  std::vector<GradientSize> sizes;
  for (const size_t one : bytes) sizes.push_back({one, DType::kFloat});
  return sizes;
}

// (first, end, bytes) of each bucket.
std::vector<std::tuple<size_t, size_t, size_t>> BucketsOf(const std::vector<GradientSize>& sizes,
                                                          int buckets) {
  std::vector<std::tuple<size_t, size_t, size_t>> formed;
  for (const GradientBucket& one : FormBuckets(sizes, buckets))
    formed.emplace_back(one.first, one.end, one.bytes);
  return formed;
}

TEST(GradientBuckets, EndWhenTheyHaveTheirShareOfTheBytes) {
  // 640 bytes, a third is 214.
  const auto sizes = FloatGradients({128, 128, 64, 256, 64});
  using Bucket = std::tuple<size_t, size_t, size_t>;
  EXPECT_THAT(BucketsOf(sizes, 3),
              ElementsAre(Bucket{0, 2, 256}, Bucket{2, 4, 320}, Bucket{4, 5, 64}));
  EXPECT_THAT(BucketsOf(sizes, 1), ElementsAre(Bucket{0, 5, 640}));
  EXPECT_EQ(FormBuckets(sizes, 64).size(), 5U) << "no gradient is split";
}

TEST(GradientBuckets, PadEachGradientTo64Bytes) {
  EXPECT_EQ(PaddedBytes(0), 0U);
  EXPECT_EQ(PaddedBytes(1), 64U);
  EXPECT_EQ(PaddedBytes(64), 64U);
  EXPECT_EQ(FormBuckets(FloatGradients({4, 65}), 1)[0].bytes, 64U + 128U);
}

TEST(GradientBuckets, HaveOneTypeOfElement) {
  std::vector<GradientSize> sizes = FloatGradients({64, 64, 64});
  sizes[1].dtype = DType::kDouble;
  const std::vector<GradientBucket> formed = FormBuckets(sizes, 1);
  ASSERT_EQ(formed.size(), 3U);
  EXPECT_EQ(formed[1].dtype, DType::kDouble);
}

TEST(GradientBuckets, ThereMayBeNoGradientButNotNoBucket) {
  EXPECT_TRUE(FormBuckets({}, 6).empty());
  EXPECT_EQ(FormBuckets(FloatGradients({0, 0}), 1).size(), 2U) << "without elements";
  EXPECT_THROW(FormBuckets(FloatGradients({4}), 0), InvalidArgument);
}

}  // namespace
}  // namespace caffe
