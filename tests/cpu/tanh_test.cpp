#include "caffe/cpu/kernels/vector_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace caffe::cpu {
namespace {

// The difference in units in the last place of `expected`.
template <typename T>
double UlpsBetween(T value, T expected) {
  const T next = std::nextafter(expected, std::numeric_limits<T>::infinity());
  return std::abs(static_cast<double>(value) - static_cast<double>(expected)) /
         static_cast<double>(next - expected);
}

template <typename T>
void ExpectNearTheLibrary() {
  std::vector<T> x;
  for (int i = -4000; i <= 4000; ++i) x.push_back(T(i) / T(400));
  for (int power = -30; power < 10; ++power) x.push_back(std::ldexp(T(1.25), power));
  std::vector<T> y = x;
  Tanh(y.data(), static_cast<int64_t>(y.size()), T(0.5), y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(UlpsBetween(y[i], std::tanh(T(0.5) * x[i])), 5) << x[i];
  }
}

TEST(TanhTest, IsThatOfTheLibraryButForLastBits) {
  ExpectNearTheLibrary<float>();
  ExpectNearTheLibrary<double>();
}

TEST(TanhTest, KeepsNanAndReachesOne) {
  std::vector<float> x(37, std::numeric_limits<float>::quiet_NaN());  // full vectors and a rest
  x[0] = x[36] = std::numeric_limits<float>::infinity();
  x[1] = x[35] = -std::numeric_limits<float>::infinity();
  std::vector<float> y(x.size());
  Tanh(x.data(), 37, 1, y.data());
  for (const int i : {0, 36}) EXPECT_EQ(y[i], 1);
  for (const int i : {1, 35}) EXPECT_EQ(y[i], -1);
  for (int i = 2; i < 35; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
}

}  // namespace
}  // namespace caffe::cpu
