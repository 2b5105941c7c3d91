#include "caffe/cpu/transpose.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "caffe/dtype.hpp"

namespace caffe::cpu {
namespace {

// Few channels are written together; pixels are processed in blocks of 256 and 1024.
constexpr int64_t kChannels[] = {1, 2, 3, 4, 5, 16, 33};
constexpr int64_t kPixels[] = {1, 15, 255, 256, 257, 1025, 3000};

template <typename To, typename Convert>
void Check(int64_t channels, int64_t pixels, bool to_last, Convert convert) {
  constexpr int64_t kItems = 2;
  const Shape shape{kItems, channels, 1, pixels};
  std::vector<float> from(static_cast<size_t>(shape.count()));
  std::iota(from.begin(), from.end(), 1.0f);
  std::vector<To> to(from.size()), want(from.size());
  for (int64_t n = 0; n < kItems; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t item = n * channels * pixels;
        const auto plain = static_cast<size_t>(item + c * pixels + p);
        const auto last = static_cast<size_t>(item + p * channels + c);
        want[to_last ? last : plain] = convert(from[to_last ? plain : last]);
      }
    }
  }
  TensorView x{{shape, DType::kFloat}, from.data()}, y{{shape, kDTypeOf<To>}, to.data()};
  (to_last ? y : x).layout = Layout::kChannelsLast;
  const auto convert_range = [&](const float* some, To* made, int64_t count) {
    std::transform(some, some + count, made, convert);
  };
  TransposeImages<float, To>(x, y, std::is_same_v<To, float>, convert_range);
  EXPECT_EQ(to, want) << channels << " channels, " << pixels << " pixels, to "
                      << (to_last ? "channels-last" : "plain");
}

TEST(TransposeTest, MovesAndConvertsEachElement) {
  for (const int64_t channels : kChannels) {
    for (const int64_t pixels : kPixels) {
      for (const bool to_last : {true, false}) {
        Check<float>(channels, pixels, to_last, [](float x) { return x; });
        Check<uint8_t>(channels, pixels, to_last,
                       [](float x) { return static_cast<uint8_t>(static_cast<int64_t>(x) % 251); });
      }
    }
  }
}

}  // namespace
}  // namespace caffe::cpu
