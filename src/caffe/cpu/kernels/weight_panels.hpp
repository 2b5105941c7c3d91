// Weights in the order in which pixel_sums.hpp reads them: panels of kBlock output channels. In a
// panel, units of all its channels alternate; taps are outermost and input channels innermost.
#pragma once

#include <cstring>
#include <numeric>
#include <vector>

#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

struct WeightPanels {
  int64_t outputs, channels, taps;
  int64_t weight_bytes;  // of one weight
  int64_t padding = 0;   // channels of zeros after those of each tap, up to a whole unit
  // The kernel adds 128 to numbers that the weights multiply, and so begins with the negative of
  // what that adds to the sums.
  bool adds_128 = false;

  int64_t weights() const { return channels * taps; }  // per output channel, without padding
  int64_t panel_bytes() const { return (channels + padding) * taps * weight_bytes * kBlock; }
  int64_t bytes() const { return BlocksOf(outputs) * panel_bytes(); }
  // After the panels of 8-bit numbers: the scales of the channels, and what sums begin with if the
  // kernel adds 128.
  float* Scales(const TensorView& packed) const {
    return reinterpret_cast<float*>(packed.as<char>() + bytes());
  }
  int32_t* Begins(const TensorView& packed) const {
    return reinterpret_cast<int32_t*>(Scales(packed) + BlocksOf(outputs) * kBlock);
  }
  int64_t bytes_of_numbers() const {
    return bytes() +
           (adds_128 ? 2 : 1) * BlocksOf(outputs) * kBlock * static_cast<int64_t>(sizeof(float));
  }
};

// Stores the weights of output channel k, which are ordered channel by channel, in its panel.
template <typename T>
void PackFilter(const WeightPanels& panels, int64_t k, const T* from, void* packed) {
  constexpr int64_t kInUnit = kUnitBytes / sizeof(T);
  T* const to = static_cast<T*>(packed) +
                (k / kBlock * panels.panel_bytes() / kUnitBytes + k % kBlock) * kInUnit;
  for (int64_t tap = 0; tap < panels.taps; ++tap) {
    for (int64_t c = 0; c < panels.channels; ++c) {
      const int64_t i = tap * (panels.channels + panels.padding) + c;
      to[i / kInUnit * kBlock * kInUnit + i % kInUnit] = from[c * panels.taps + tap];
    }
  }
}

template <typename T>
PackedOperand PackedPanels(const WeightPanels& panels, int operand) {
  const auto pack = [panels](const KernelContext& ctx) {
    std::memset(ctx.output(0).data, 0, static_cast<size_t>(panels.bytes()));
    const int64_t grain = kPointwiseGrain / panels.weights() + 1;
    ParallelFor(panels.outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        PackFilter(panels, k, ctx.input(0).as<const T>() + k * panels.weights(),
                   ctx.output(0).data);
      }
    });
  };
  return {operand, static_cast<size_t>(panels.bytes()), pack, 0};
}

// Quantizes float weights to 8 bits.
inline PackedOperand PackedNumberPanels(const WeightPanels& panels, int operand) {
  const auto bytes = static_cast<size_t>(panels.bytes_of_numbers());
  const auto pack = [=](const KernelContext& ctx) {
    const TensorView& packed = ctx.output(0);
    std::memset(packed.data, 0, bytes);
    const int64_t count = panels.weights();
    ParallelFor(panels.outputs, kPointwiseGrain / count + 1, [&](int64_t begin, int64_t end) {
      std::vector<int8_t> numbers(static_cast<size_t>(count));
      for (int64_t k = begin; k < end; ++k) {
        panels.Scales(packed)[k] =
            QuantizeRow(ctx.input(0).as<const float>() + k * count, count, 1, numbers.data());
        if (panels.adds_128) {
          panels.Begins(packed)[k] =
              -128 * std::accumulate(numbers.begin(), numbers.end(), int32_t{0});
        }
        PackFilter(panels, k, numbers.data(), packed.data);
      }
    });
  };
  return {operand, bytes, pack, 0};
}

}  // namespace caffe::cpu
