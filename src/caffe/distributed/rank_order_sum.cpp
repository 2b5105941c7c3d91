#include "caffe/distributed/rank_order_sum.hpp"

#include <algorithm>
#include <array>

#include "caffe/core/cpu_clones.hpp"

namespace caffe {
namespace {

// A number after it has travelled as a Wire.
template <typename Wire, typename T>
inline T Travelled(T value) {
  if constexpr (std::is_same_v<Wire, T>) return value;
  return T(static_cast<float>(Wire(value)));
}

template <typename T, typename Wire>
CAFFE_CPU_CLONES void Add(const T* values, int64_t count, double* sums) {
  for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(Travelled<Wire>(values[i]));
}

template <typename T, typename Wire>
CAFFE_CPU_CLONES void Store(const double* sums, int64_t count, double factor, T* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = T(static_cast<double>(Wire(sums[i] * factor)));
}

// Instantiated for each floating-point type, with itself and each narrower one as Wire.
template <typename T, typename Wire>
void Sum(std::span<void* const> inputs, std::span<void* const> outputs, int64_t begin, int64_t end,
         double factor) {
  std::array<double, 1024> sums;
  for (int64_t block = begin; block < end; block += sums.size()) {
    const int64_t count = std::min<int64_t>(sums.size(), end - block);
    std::fill_n(sums.begin(), count, 0.0);
    for (const void* input : inputs) {
      Add<T, Wire>(static_cast<const T*>(input) + block, count, sums.data());
    }
    for (void* output : outputs) {
      Store<T, Wire>(sums.data(), count, factor, static_cast<T*>(output) + block);
    }
  }
}

}  // namespace

void SumInRankOrder(DType dtype, DType wire, std::span<void* const> inputs,
                    std::span<void* const> outputs, int64_t begin, int64_t end, double factor) {
  VisitFloat(dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(wire, [&]<typename Wire>(TypeTag<Wire>) {
      if constexpr (std::is_same_v<T, Wire> || sizeof(Wire) < sizeof(T)) {
        Sum<T, Wire>(inputs, outputs, begin, end, factor);
      } else {
        throw InternalError("numbers cannot travel in more bits than they have");
      }
    });
  });
}

}  // namespace caffe
