// Computations of kernels on packs: conversions, divisions, maxima of special numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "caffe/cuda/divisor.cuh"
#include "caffe/cuda/kernels/ave_pool_packs.cuh"
#include "caffe/cuda/pack.cuh"

namespace caffe::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
class CudaPacksTest : public ::testing::Test {};
using HalfTypes = ::testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(CudaPacksTest, HalfTypes);

template <typename T, size_t N>
Pack<T, static_cast<int>(N)> PackOf(const float (&values)[N]) {
  Pack<T, static_cast<int>(N)> pack;
  for (size_t k = 0; k < N; ++k) pack.values[k] = T(values[k]);
  return pack;
}

TYPED_TEST(CudaPacksTest, ConvertAsSingleNumbersDo) {
  const WidePack<TypeParam, 8> wide{
      {0.f, -0.f, 1.f + 0x1p-9f, -3e38f, kInfinity, 1e-40f, 65519.f, 1.f + 3 * 0x1p-9f}};
  const Pack<TypeParam, 8> narrow = Narrow(wide);
  const WidePack<TypeParam, 8> back = Widen(narrow);
  for (int k = 0; k < 8; ++k) {
    EXPECT_EQ(narrow.values[k].bits, TypeParam(wide.values[k]).bits) << k;
    EXPECT_EQ(back.values[k], static_cast<float>(narrow.values[k])) << k;
  }
  EXPECT_TRUE(std::isnan(Widen(PackOf<TypeParam>({kNan, 0, 0, 0})).values[0]));
}

TYPED_TEST(CudaPacksTest, WhatIsOutsideAddsNothing) {
  const auto pack = PackOf<TypeParam>({kNan, kInfinity, -2, 3, 4, 5, 6, 7});
  for (const float value : WidenInside(pack, false).values) EXPECT_EQ(value, 0);
  EXPECT_EQ(WidenInside(pack, true).values[1], kInfinity);
}

TYPED_TEST(CudaPacksTest, TheFirstOfEqualMaximaWinsAndNanNever) {
  MaxOfPacks<TypeParam, 4> most;
  most.Take(PackOf<TypeParam>({-0.f, kNan, -kInfinity, 2}), 3);
  most.Take(PackOf<TypeParam>({0.f, -5, kNan, 2}), 4);
  most.Take(PackOf<TypeParam>({-1, -6, -kInfinity, 3}), 5);
  const Pack<TypeParam, 4> values = most.Values();
  const Pack<uint8_t, 4> winners = most.Winners();
  EXPECT_EQ(values.values[0].bits, TypeParam(-0.f).bits);
  EXPECT_EQ(static_cast<float>(values.values[1]), -5);
  EXPECT_EQ(static_cast<float>(values.values[2]), -kInfinity);
  EXPECT_EQ(static_cast<float>(values.values[3]), 3);
  EXPECT_THAT(winners.values, ::testing::ElementsAre(3, 4, 255, 5));
}

TEST(CudaDivisorTest, DividesAsTheProcessorDoes) {
  for (const int64_t divisor :
       {1, 2, 3, 5, 6, 7, 12, 56, 63, 64, 65, 1000, 65537, 2147483646, 2147483647}) {
    const Divisor by(divisor);
    for (const int64_t near :
         {int64_t{0}, divisor, 7 * divisor, kMostDividend / divisor * divisor, kMostDividend}) {
      for (int64_t x = std::max<int64_t>(near - 2, 0); x <= std::min(near + 2, kMostDividend);
           ++x) {
        uint32_t remainder;
        EXPECT_EQ(by.Divide(static_cast<uint32_t>(x), &remainder), x / divisor) << x;
        EXPECT_EQ(remainder, x % divisor) << x << " by " << divisor;
      }
    }
  }
}

// A mean has the bits of a division, without one.
TEST(CudaQuotientTest, IsTheQuotient) {
  uint32_t bits = 1;
  for (int i = 0; i < 20'000; ++i) {
    bits = bits * 1664525 + 1013904223;
    const auto sum = static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-20f;
    const auto size = static_cast<float>(1 + i % 64);
    ASSERT_EQ(Quotient(sum, size, 1 / size), sum / size) << sum << " / " << size;
  }
  EXPECT_EQ(Quotient(kInfinity, 9.f, 1 / 9.f), kInfinity);
  EXPECT_EQ(Quotient(-kInfinity, 9.f, 1 / 9.f), -kInfinity);
  EXPECT_TRUE(std::isnan(Quotient(kNan, 9.f, 1 / 9.f)));
}

}  // namespace
}  // namespace caffe::cuda
