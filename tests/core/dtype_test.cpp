#include "caffe/dtype.hpp"

#include <gtest/gtest.h>

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
