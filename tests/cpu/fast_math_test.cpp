#include "caffe/cpu/kernels/fast_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace caffe::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double RelativeError(float value, double expected) {
  return std::abs(static_cast<double>(value) - expected) / std::abs(expected);
}

TEST(FastMathTest, ExpIsThatOfTheLibraryButForLastBits) {
  constexpr double kUnit = std::numeric_limits<float>::epsilon();
  for (int i = -8730; i <= 8870; ++i) {
    const float x = static_cast<float>(i) / 100;
    EXPECT_LE(RelativeError(FastExp(x), std::exp(static_cast<double>(x))), kUnit) << x;
  }
  EXPECT_EQ(FastExp(0), 1);
}

TEST(FastMathTest, ExpReachesZeroAndInfinityAndKeepsNan) {
  for (const float x : {-87.4F, -200.0F, -1e30F, -kInfinity}) EXPECT_EQ(FastExp(x), 0) << x;
  for (const float x : {88.8F, 200.0F, 1e30F, kInfinity}) EXPECT_EQ(FastExp(x), kInfinity) << x;
  EXPECT_TRUE(std::isnan(FastExp(kNan)));
}

TEST(FastMathTest, SigmoidAndTanhAreThoseOfTheLibraryButForLastBits) {
  constexpr double kUnit = std::numeric_limits<float>::epsilon();
  for (int i = -8000; i < 8000; ++i) {
    const float x = (static_cast<float>(i) + 0.5F) / 100;
    const double wide = static_cast<double>(x);
    EXPECT_LE(RelativeError(FastSigmoid(x), 1 / (1 + std::exp(-wide))), 3 * kUnit) << x;
    EXPECT_LE(RelativeError(FastTanh(x), std::tanh(wide)), 3 * kUnit) << x;
  }
  for (const float x : {0.0F, 1e-30F, -1e-30F}) EXPECT_EQ(FastTanh(x), x);
}

TEST(FastMathTest, SigmoidAndTanhReachTheirLimits) {
  for (const float x : {200.0F, kInfinity}) {
    EXPECT_EQ(FastSigmoid(x), 1) << x;
    EXPECT_EQ(FastSigmoid(-x), 0) << x;
    EXPECT_EQ(FastTanh(x), 1) << x;
    EXPECT_EQ(FastTanh(-x), -1) << x;
  }
  EXPECT_TRUE(std::isnan(FastSigmoid(kNan)));
  EXPECT_TRUE(std::isnan(FastTanh(kNan)));
}

TEST(FastMathTest, NormalIsThatOfTheLibrary) {
  for (int i = -1000; i <= 1000; ++i) {
    const float x = static_cast<float>(i) / 200;
    const double wide = static_cast<double>(x), probability = 0.5 * std::erfc(-wide / std::sqrt(2));
    EXPECT_LE(RelativeError(FastNormal(x).probability, probability), 1e-6) << x;
    EXPECT_LE(RelativeError(FastNormal(x).bell, std::exp(-wide * wide / 2)), 1e-6) << x;
    const double density = std::exp(-wide * wide / 2) / std::sqrt(2 * std::acos(-1.0));
    EXPECT_NEAR(FastGeluSlope(x), probability + wide * density, 3e-7) << x;
  }
}

TEST(FastMathTest, NormalEndsInZeroAndOne) {
  for (const float x : {20.0F, 1e30F, kInfinity}) {
    EXPECT_EQ(FastNormal(x).probability, 1) << x;
    EXPECT_EQ(FastNormal(-x).probability, 0) << x;
    EXPECT_EQ(FastNormal(x).bell, 0) << x;
  }
  EXPECT_TRUE(std::isnan(FastNormal(kNan).probability));
}

}  // namespace
}  // namespace caffe::cpu
