// Sums of products with a block of output channels, of as many pixels in a row as fit the registers
// of AVX-512: what convolutions of 1x1 come to where channels lie last.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "caffe/cpu/kernels/float_vector.hpp"
#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

inline constexpr int kBlockVectors = 2;  // vectors of output channels that are computed together
inline constexpr int64_t kBlock = kBlockVectors * kFloatLanes;
// Pixels whose sums are in registers together: these and a block's weights take 31 of 32.
inline constexpr int kPixels = 14;

inline constexpr int64_t BlocksOf(int64_t channels) {
  return (channels + kBlock - 1) / kBlock;
}

// What is done to a sum: bias, and a ReLU.
struct SumEnd {
  const float* bias = nullptr;  // null: none
  bool has_relu = false;
  float slope = 0;

  SumEnd() = default;
  // Of an epilogue that is nothing but, at most, a ReLU. `bias` is the number of an input.
  SumEnd(const ops::Epilogue& epilogue, const KernelContext& ctx, int bias_input) {
    if (ctx.has_input(bias_input)) bias = ctx.input(bias_input).as<const float>();
    has_relu = !epilogue.empty();
    if (has_relu) slope = epilogue[0].a;
  }
  // Of the channels from this one on.
  SumEnd From(int64_t channel) const {
    SumEnd end = *this;
    if (end.bias != nullptr) end.bias += channel;
    return end;
  }
  CAFFE_FORCE_INLINE void Apply(FloatVector& value) const {
    if (has_relu) value = value > 0 ? value : value * slope + 0.0F;
  }
};

// What a row of results reads: of each of `count` rows `units` units for a pixel, those of the next
// pixel `step` units farther. A unit is a float, or a pair of bfloat16: 4 bytes.
struct PixelRows {
  const char* const* rows;
  int64_t count, units, step;
};

inline constexpr int64_t kUnitBytes = 4;

// The 4 bytes in each lane.
inline CAFFE_FORCE_INLINE void LoadUnit(const char* from, FloatVector& to) {
  float unit;
  std::memcpy(&unit, from, sizeof(unit));
  to = FloatVector{} + unit;
}

struct SumsOfFloats {
  static CAFFE_FORCE_INLINE void Add(const FloatVector& x, const FloatVector& w,
                                     FloatVector& sums) {
    sums += x * w;
  }
};

#if defined(__x86_64__)
// Two products in each lane. As text: the compiler's own form wants the instruction set where it
// stands, and this is inlined into functions that have it.
struct SumsOfPairs {
  static CAFFE_FORCE_INLINE void Add(const FloatVector& x, const FloatVector& w,
                                     FloatVector& sums) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(w), "v"(x));
  }
};
#endif

// kCount pixels from `first` on. `panel` has kBlock units of weights for each that a pixel reads.
template <typename Sums, int kCount, int kVectors>
inline CAFFE_FORCE_INLINE void SumPixels(const PixelRows& x, int64_t first, const float* panel,
                                         const SumEnd& end, float* y, int64_t y_step) {
  FloatVector sums[kCount][kVectors];
  Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
    FloatVector bias = {};
    if (end.bias != nullptr) Load(end.bias + v * kFloatLanes, bias);
    Unroll<kCount>([&](auto pixel) CAFFE_FORCE_INLINE { sums[pixel][v] = bias; });
  });
  for (int64_t row = 0; row < x.count; ++row) {
    const char* from = x.rows[row] + first * x.step * kUnitBytes;
    for (int64_t i = 0; i < x.units; ++i, panel += kBlock, from += kUnitBytes) {
      FloatVector weights[kVectors];
      Unroll<kVectors>([&](auto v)
                           CAFFE_FORCE_INLINE { Load(panel + v * kFloatLanes, weights[v]); });
      Unroll<kCount>([&](auto pixel) CAFFE_FORCE_INLINE {
        FloatVector value;
        LoadUnit(from + pixel * x.step * kUnitBytes, value);
        Unroll<kVectors>([&](auto v)
                             CAFFE_FORCE_INLINE { Sums::Add(value, weights[v], sums[pixel][v]); });
      });
    }
  }
  Unroll<kCount>([&](auto pixel) CAFFE_FORCE_INLINE {
    Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
      end.Apply(sums[pixel][v]);
      Store(sums[pixel][v], y + (first + pixel) * y_step + v * kFloatLanes);
    });
  });
}

template <typename Sums, int kVectors>
inline CAFFE_FORCE_INLINE void SumRowBy(const PixelRows& x, int64_t width, const float* panel,
                                        const SumEnd& end, float* y, int64_t y_step) {
  int64_t first = 0;
  const auto sum = [&](auto count) CAFFE_FORCE_INLINE {
    for (; first + count <= width; first += count)
      SumPixels<Sums, count, kVectors>(x, first, panel, end, y, y_step);
  };
  sum(std::integral_constant<int, kPixels>{});
  sum(std::integral_constant<int, kPixels / 2>{});
  sum(std::integral_constant<int, 3>{});
  sum(std::integral_constant<int, 1>{});
}

// A row of `width` results, which lie y_step apart, of kVectors vectors of channels.
template <int kVectors>
CAFFE_CPU_CLONES void SumRow(TypeTag<float>, const PixelRows& x, int64_t width, const float* panel,
                             const SumEnd& end, float* y, int64_t y_step) {
  SumRowBy<SumsOfFloats, kVectors>(x, width, panel, end, y, y_step);
}

// Where MultipliesBFloat16().
#if defined(__x86_64__)
template <int kVectors>
__attribute__((target("arch=x86-64-v4"))) void SumRow(TypeTag<bfloat16>, const PixelRows& x,
                                                      int64_t width, const float* panel,
                                                      const SumEnd& end, float* y, int64_t y_step) {
  SumRowBy<SumsOfPairs, kVectors>(x, width, panel, end, y, y_step);
}
#else
template <int kVectors>
void SumRow(TypeTag<bfloat16>, const PixelRows&, int64_t, const float*, const SumEnd&, float*,
            int64_t) {
  CAFFE_ASSERT(false, "no arithmetic of bfloat16");
}
#endif

}  // namespace caffe::cpu
