// Weights in the order in which pixel_sums.hpp reads them: panels of kBlock output channels. In a
// panel, units of all its channels alternate; taps are outermost and input channels innermost.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/kernels/vector_tile.hpp"
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

// Copies the weights of an output channel, which are ordered channel by channel, in the order of
// panels.
template <typename T>
void OrderFilter(const WeightPanels& panels, const T* from, T* to) {
  for (int64_t tap = 0; tap < panels.taps; ++tap, to += panels.channels + panels.padding) {
    for (int64_t c = 0; c < panels.channels; ++c) to[c] = from[c * panels.taps + tap];
    for (int64_t c = 0; c < panels.padding; ++c) to[panels.channels + c] = T(0.0F);
  }
}

#ifdef CAFFE_HAS_PIXEL_SUMS
// Makes a panel of `count` filters in its order, which are `step` bytes apart. Requires
// HasWideVectors().
CAFFE_WIDE_VECTORS inline void PackPanel(const char* filters, int64_t step, int64_t count,
                                         int64_t units, char* panel) {
  int64_t unit = 0;
  for (; count == kBlock && unit + kFloatLanes <= units; unit += kFloatLanes) {
    for (int64_t k = 0; k < kBlock; k += kFloatLanes) {
      VectorTile tile;
      tile.Load(filters + k * step + unit * kUnitBytes, step);
      tile.Transpose();
      tile.Store(panel + (unit * kBlock + k) * kUnitBytes, kBlock * kUnitBytes);
    }
  }
  for (; unit < units; ++unit) {
    char* const to = panel + unit * kBlock * kUnitBytes;
    for (int64_t k = 0; k < count; ++k)
      std::memcpy(to + k * kUnitBytes, filters + k * step + unit * kUnitBytes, kUnitBytes);
    std::memset(to + count * kUnitBytes, 0, static_cast<size_t>((kBlock - count) * kUnitBytes));
  }
}

// Makes panels: order(k, to) stores the filter of output channel k in a panel's order. Each thread
// has memory for the filters of a block.
template <typename Order>
void MakePanels(const WeightPanels& panels, int64_t threads, char* packed, char* memory,
                const Order& order) {
  const int64_t filter_bytes = panels.panel_bytes() / kBlock, blocks = BlocksOf(panels.outputs);
  ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      char* const filters = memory + thread * panels.panel_bytes();
      for (int64_t b = blocks * thread / threads; b < blocks * (thread + 1) / threads; ++b) {
        const int64_t count = std::min(kBlock, panels.outputs - b * kBlock);
        for (int64_t k = 0; k < count; ++k) order(b * kBlock + k, filters + k * filter_bytes);
        PackPanel(filters, filter_bytes, count, filter_bytes / kUnitBytes,
                  packed + b * panels.panel_bytes());
      }
    }
  });
}

// Packs `bytes` bytes: make(ctx, threads) calls MakePanels().
template <typename Make>
PackedOperand PackedBy(const WeightPanels& panels, int operand, int64_t bytes, const Make& make) {
  const int64_t threads = omp_get_max_threads();
  return {operand, static_cast<size_t>(bytes),
          [make, threads](const KernelContext& ctx) { make(ctx, threads); },
          static_cast<size_t>(threads * panels.panel_bytes())};
}

template <typename T>
PackedOperand PackedPanels(const WeightPanels& panels, int operand) {
  const auto pack = [panels](const KernelContext& ctx, int64_t threads) {
    MakePanels(panels, threads, ctx.output(0).as<char>(), static_cast<char*>(ctx.workspace),
               [&](int64_t k, char* to) {
                 OrderFilter(panels, ctx.input(0).as<const T>() + k * panels.weights(),
                             reinterpret_cast<T*>(to));
               });
  };
  return PackedBy(panels, operand, panels.bytes(), pack);
}

// Quantizes float weights to 8 bits.
inline PackedOperand PackedNumberPanels(const WeightPanels& panels, int operand) {
  const auto pack = [panels](const KernelContext& ctx, int64_t threads) {
    const TensorView& packed = ctx.output(0);
    std::memset(packed.as<char>() + panels.bytes(), 0,
                static_cast<size_t>(panels.bytes_of_numbers() - panels.bytes()));
    const int64_t count = panels.weights();
    MakePanels(panels, threads, packed.as<char>(), static_cast<char*>(ctx.workspace),
               [&](int64_t k, char* to) {
                 std::vector<int8_t> numbers(static_cast<size_t>(count));
                 panels.Scales(packed)[k] = QuantizeRow(ctx.input(0).as<const float>() + k * count,
                                                        count, 1, numbers.data());
                 if (panels.adds_128) {
                   panels.Begins(packed)[k] =
                       -128 * std::accumulate(numbers.begin(), numbers.end(), int32_t{0});
                 }
                 OrderFilter(panels, numbers.data(), reinterpret_cast<int8_t*>(to));
               });
  };
  return PackedBy(panels, operand, panels.bytes_of_numbers(), pack);
}
#endif

}  // namespace caffe::cpu
