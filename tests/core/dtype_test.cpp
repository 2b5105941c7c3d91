#include "caffe/dtype.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace caffe {
namespace {

uint16_t BFloat16Bits(uint32_t word) {
  return bfloat16(std::bit_cast<float>(word)).bits;
}

TEST(DTypeTest, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(BFloat16Bits(0x3f800000), 0x3f80);  // exact
  EXPECT_EQ(BFloat16Bits(0x3f807fff), 0x3f80);  // below half
  EXPECT_EQ(BFloat16Bits(0x3f808000), 0x3f80);  // half, even below
  EXPECT_EQ(BFloat16Bits(0x3f808001), 0x3f81);  // above half
  EXPECT_EQ(BFloat16Bits(0x3f818000), 0x3f82);  // half, even above
  EXPECT_EQ(BFloat16Bits(0xbf818000), 0xbf82);
  EXPECT_EQ(BFloat16Bits(0x80000000), 0x8000);  // -0
  EXPECT_EQ(BFloat16Bits(0x7f7fffff), 0x7f80);  // the largest float rounds to infinity
  EXPECT_EQ(BFloat16Bits(0x00018000), 0x0002);  // subnormal
}

TEST(DTypeTest, BFloat16KeepsSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(bfloat16(infinity)), infinity);
  EXPECT_EQ(static_cast<float>(bfloat16(-infinity)), -infinity);
  // A NaN whose payload is in the lower half must not become infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(0xffffffffu)))));
}

TEST(DTypeTest, EveryBFloat16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    bfloat16 value;
    value.bits = static_cast<uint16_t>(bits);
    const float wide = static_cast<float>(value);
    if (!std::isnan(wide)) {
      ASSERT_EQ(bfloat16(wide).bits, bits);
    }
  }
}

TEST(DTypeTest, Float16) {
  EXPECT_EQ(float16(1.0f).bits, 0x3c00);
  EXPECT_EQ(float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(float16(65520.0f).bits, 0x7c00);             // infinity
  EXPECT_EQ(float16(1.0f + 0x1p-11f).bits, 0x3c00);      // half, even below
  EXPECT_EQ(float16(1.0f + 3 * 0x1p-11f).bits, 0x3c02);  // half, even above
  EXPECT_EQ(float16(0x1p-24f).bits, 0x0001);             // the smallest subnormal
  EXPECT_TRUE(std::isnan(static_cast<float>(float16(std::nanf("")))));
}

TEST(DTypeTest, Float16KeepsSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float16(infinity).bits, 0x7c00);
  EXPECT_EQ(float16(-infinity).bits, 0xfc00);
  EXPECT_EQ(float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(float16(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(float16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_TRUE(std::isnan(static_cast<float>(float16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(float16(std::bit_cast<float>(0xffffffffu)))));
}

// The value of a finite number by the definition of IEEE 754: sign, exponent, fraction.
double ValueOfHalf(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 0x1f);
  const int fraction = static_cast<int>(bits & 0x3ff) + (exponent > 0 ? 0x400 : 0);
  const double magnitude = std::ldexp(fraction, std::max(exponent, 1) - 25);
  return bits < 0x8000 ? magnitude : -magnitude;
}

// Between two neighbours, numbers go to the nearer one, and those in the middle to the even one.
TEST(DTypeTest, EveryFloat16HasItsValueAndNeighboursRoundToIt) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00) == 0x7c00) continue;
    const float value = static_cast<float>(std::bit_cast<float16>(static_cast<uint16_t>(bits)));
    ASSERT_EQ(value, ValueOfHalf(bits));
    ASSERT_EQ(float16(value).bits, bits);
    // The number past the largest one would be 2^16.
    const double next =
        (bits & 0x7fff) == 0x7bff ? std::copysign(65536, value) : ValueOfHalf(bits + 1);
    const auto middle = static_cast<float>((value + next) / 2);
    ASSERT_EQ(float16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(float16(std::nextafter(middle, value)).bits, bits);
    ASSERT_EQ(float16(std::nextafter(middle, static_cast<float>(next))).bits, bits + 1);
  }
}

TEST(DTypeTest, NamesAndSizes) {
  EXPECT_EQ(Name(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(SizeOf(DType::kDouble), 8u);
  EXPECT_EQ(SizeOf(DType::kFloat), 4u);
  EXPECT_EQ(SizeOf(DType::kFloat16), 2u);
  for (const DType dtype : {DType::kDouble, DType::kFloat, DType::kFloat16, DType::kBFloat16}) {
    VisitFloat(dtype, [&]<typename T>(TypeTag<T>) {
      EXPECT_EQ(kDTypeOf<T>, dtype);
      EXPECT_EQ(sizeof(T), SizeOf(dtype));
    });
  }
}

}  // namespace
}  // namespace caffe
