// Sums of products with a block of output channels, for as many pixels of a row as fit the
// registers of AVX-512: the core of 1x1 convolutions of channels-last images.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "caffe/cpu/kernels/float_vector.hpp"
#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

inline constexpr int kBlockVectors = 2;  // vectors of output channels that are computed together
inline constexpr int64_t kBlock = kBlockVectors * kFloatLanes;
// Number of pixels with sums in registers: with a block's weights they take 31 of 32 registers.
inline constexpr int kPixels = 14;

inline constexpr int64_t BlocksOf(int64_t channels) {
  return (channels + kBlock - 1) / kBlock;
}

inline constexpr int64_t kUnitBytes = 4;

// Compiled for AVX-512 only, if available. Uses inline assembly, because intrinsics need the
// instruction set in the function that contains them, and these are inlined into functions that
// have it.
#if defined(__x86_64__) && !defined(__clang__)
#define CAFFE_HAS_PIXEL_SUMS 1

// Attribute of functions that use AVX-512.
#define CAFFE_WIDE_VECTORS __attribute__((target("arch=x86-64-v4")))

struct UnitBytes {
  char bytes[kUnitBytes];
};

// Broadcasts 4 bytes to each lane.
inline CAFFE_FORCE_INLINE void ReadUnit(const void* from, FloatVector& x) {
  __asm__("vbroadcastss %1, %0" : "=v"(x) : "m"(*reinterpret_cast<const UnitBytes*>(from)));
}

// Null if the input is absent.
inline const float* BiasOf(const KernelContext& ctx, int input) {
  return ctx.has_input(input) ? ctx.input(input).as<const float>() : nullptr;
}

// Epilogue of float sums: adds a bias and applies a ReLU.
struct SumEnd {
  const float* bias = nullptr;  // for the block's channels; null: none
  bool has_relu = false;
  float slope = 0;  // of negative sums if there is a ReLU

  static bool Serves(const ops::Epilogue& epilogue) {
    return epilogue.empty() ||
           (epilogue.size() == 1 && epilogue[0].kind == ops::Pointwise::Kind::kRelu);
  }
  // Requires Serves(epilogue). `bias_input`: index of the bias.
  SumEnd(const ops::Epilogue& epilogue, const KernelContext& ctx, int bias_input) {
    bias = BiasOf(ctx, bias_input);
    has_relu = !epilogue.empty();
    if (has_relu) slope = epilogue[0].a;
  }
  // The same for channels from `channel` on.
  SumEnd From(int64_t channel) const {
    SumEnd end = *this;
    if (end.bias != nullptr) end.bias += channel;
    return end;
  }
  // Initializes the sums of the channels from `channel` on.
  CAFFE_FORCE_INLINE void Begin(int64_t channel, FloatVector& sums) const {
    sums = FloatVector{};
    if (bias != nullptr) Load(bias + channel, sums);
  }
  CAFFE_FORCE_INLINE void Finish(int64_t, const FloatVector& sums, FloatVector& values) const {
    values = sums;
    if (has_relu) values = values > 0 ? values : values * slope + 0.0F;
  }
};

// The range of numbers of a type.
struct NumberRange {
  float least, most;
};
inline NumberRange RangeOf(DType dtype) {
  if (dtype == DType::kUInt8) return {0.0F, 255.0F};
  if (dtype == DType::kInt8) return {-128.0F, 127.0F};
  return {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
}

// True if the epilogue is at most one ReLU or clip, as NumberEnd supports.
inline bool IsOneLimit(std::span<const ops::Pointwise> epilogue) {
  using Kind = ops::Pointwise::Kind;
  return epilogue.empty() ||
         (epilogue.size() == 1 && (epilogue[0].kind == Kind::kClip ||
                                   (epilogue[0].kind == Kind::kRelu && epilogue[0].a <= 1)));
}

// Epilogue of sums of 8-bit products: converts them to numbers in the result's scale, not yet
// rounded.
struct NumberEnd {
  // For the block's channels. As in oneDNN's kernels, so that results are the same: the shift is
  // added to a sum, and the factor converts the sum to the result's scale.
  const int32_t* begins = nullptr;  // null: 0
  const float *factors = nullptr, *shifts = nullptr;
  bool is_leaky = false;
  float slope = 0;  // of negative numbers if leaky; at most 1
  float least = 0, most = 0;

  NumberEnd() = default;
  // Numbers are in `unit` and limited to `range`. Requires IsOneLimit(epilogue).
  NumberEnd(std::span<const ops::Pointwise> epilogue, float unit, NumberRange range)
      : least(range.least), most(range.most) {
    if (epilogue.empty()) return;
    const ops::Pointwise& entry = epilogue[0];
    if (entry.kind == ops::Pointwise::Kind::kClip) {
      least = std::clamp(entry.a / unit, range.least, range.most);
      most = std::clamp(entry.b / unit, range.least, range.most);
    } else if (entry.a == 0) {
      least = 0;
    } else {
      is_leaky = true, slope = entry.a;
    }
  }

  // Initializes the sums with the bits of integers.
  CAFFE_FORCE_INLINE void Begin(int64_t channel, FloatVector& sums) const {
    sums = FloatVector{};
    if (begins != nullptr) std::memcpy(&sums, begins + channel, sizeof(sums));
  }
  CAFFE_FORCE_INLINE void Finish(int64_t channel, const FloatVector& sums,
                                 FloatVector& numbers) const {
    Scale(channel, sums, numbers);
    Limit(numbers);
  }
  CAFFE_FORCE_INLINE void Scale(int64_t channel, const FloatVector& sums,
                                FloatVector& numbers) const {
    FloatVector factor, shift;
    Load(factors + channel, factor);
    Load(shifts + channel, shift);
    numbers = (sums + shift) * factor;
  }
  CAFFE_FORCE_INLINE void Limit(FloatVector& numbers) const {
    FloatVector limit;
    if (is_leaky) {
      const FloatVector less = numbers * slope;
      numbers = numbers > less ? numbers : less;
    }
    ReadUnit(&least, limit);
    numbers = numbers > limit ? numbers : limit;
    ReadUnit(&most, limit);
    numbers = numbers < limit ? numbers : limit;
  }
};

// As Store(), with a single instruction. Numbers fit 8 bits and are rounded to nearest even;
// bfloat16 denormals become 0.
inline CAFFE_FORCE_INLINE void StoreAtOnce(const FloatVector& from, float* to) {
  Store(from, to);
}
inline CAFFE_FORCE_INLINE void StoreAtOnce(const FloatVector& from, bfloat16* to) {
  HalfBits halves;
  __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(from));
  std::memcpy(static_cast<void*>(to), &halves, sizeof(halves));
}
// Rounds to nearest even.
inline CAFFE_FORCE_INLINE void ToIntegers(const FloatVector& from, IntVector& to) {
  __asm__("vcvtps2dq %1, %0" : "=v"(to) : "v"(from));
}
inline CAFFE_FORCE_INLINE void StoreAtOnce(const FloatVector& from, uint8_t* to) {
  IntVector numbers;
  ToIntegers(from, numbers);
  const ByteBits bytes = __builtin_convertvector(numbers, ByteBits);
  std::memcpy(to, &bytes, sizeof(bytes));
}
inline CAFFE_FORCE_INLINE void StoreAtOnce(const FloatVector& from, int8_t* to) {
  StoreAtOnce(from, reinterpret_cast<uint8_t*>(to));
}
// Stores the first lanes.
template <typename T>
inline CAFFE_FORCE_INLINE void StoreAtOnce(const FloatVector& from, T* to, AllLanes) {
  StoreAtOnce(from, to);
}
template <typename T>
inline CAFFE_FORCE_INLINE void StoreAtOnce(const FloatVector& from, T* to, int64_t lanes) {
  T all[kFloatLanes];
  StoreAtOnce(from, all);
  std::memcpy(static_cast<void*>(to), all, static_cast<size_t>(lanes) * sizeof(T));
}

// Stores a block of channels; in bfloat16 a whole cache line if it begins one.
template <typename T>
inline CAFFE_FORCE_INLINE void StoreBlock(const FloatVector& first, const FloatVector& second,
                                          T* to) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    FloatVector pairs;
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs) : "v"(first), "v"(second));
    std::memcpy(static_cast<void*>(to), &pairs, sizeof(pairs));
  } else {
    StoreAtOnce(first, to);
    StoreAtOnce(second, to + kFloatLanes);
  }
}

// Input of a row of results: `width` pixels of `units` units each. A unit is one float, two
// bfloat16 or four 8-bit numbers.
struct PixelRow {
  const char* pixels;
  int64_t width, units;
};

// A row of results as floats; pixels are `step` apart.
struct FloatRow {
  float* first;
  int64_t step;

  CAFFE_FORCE_INLINE void Put(int64_t pixel, int64_t channel, const FloatVector& values) const {
    Store(values, first + pixel * step + channel);
  }
};

// A row of 8-bit results in one byte of words that hold four rows.
struct ByteRow {
  int32_t* first;
  int64_t step;        // from pixel to pixel, in words
  int32_t zero;        // added to results, so that they are unsigned: 0 or 128
  int shift;           // where the byte is in a word, in bits
  int32_t other_bits;  // of the word

  ByteRow(int32_t* first, int64_t step, int slot, int32_t zero)
      : first(first), step(step), zero(zero), shift(8 * slot), other_bits(~(0xFF << shift)) {}

  CAFFE_FORCE_INLINE void Put(int64_t pixel, int64_t channel, const FloatVector& values) const {
    IntVector numbers;
    ToIntegers(values, numbers);
    Put(pixel, channel, numbers);
  }
  CAFFE_FORCE_INLINE void Put(int64_t pixel, int64_t channel, const IntVector& numbers) const {
    int32_t* const to = first + pixel * step + channel;
    IntVector words;
    std::memcpy(&words, to, sizeof(words));
    words = (words & other_bits) | (numbers + zero) << shift;
    std::memcpy(to, &words, sizeof(words));
  }
};

// How a unit is read and multiplied: here one product per lane.
struct SumsOfFloats {
  static CAFFE_FORCE_INLINE void Read(const char* from, FloatVector& x) { ReadUnit(from, x); }
  static CAFFE_FORCE_INLINE void Add(const FloatVector& x, const FloatVector& w,
                                     FloatVector& sums) {
    sums += x * w;
  }
  static CAFFE_FORCE_INLINE void ToFloats(FloatVector&) {}
};

// Two products per lane.
struct SumsOfPairs {
  static CAFFE_FORCE_INLINE void Read(const char* from, FloatVector& x) { ReadUnit(from, x); }
  static CAFFE_FORCE_INLINE void Add(const FloatVector& x, const FloatVector& w,
                                     FloatVector& sums) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(w), "v"(x));
  }
  static CAFFE_FORCE_INLINE void ToFloats(FloatVector&) {}
};

// Four products per lane. The instruction takes unsigned x, so 128 is added to signed numbers, and
// the sums begin with the negative of the resulting excess.
template <bool kIsSigned>
struct SumsOfNumbers {
  static CAFFE_FORCE_INLINE void Read(const char* from, FloatVector& x) {
    if constexpr (kIsSigned) {
      const IntVector signs = IntVector{} + static_cast<int32_t>(0x80808080);
      __asm__("vpxord %2%{1to16%}, %1, %0"
              : "=v"(x)
              : "v"(signs), "m"(*reinterpret_cast<const UnitBytes*>(from)));
    } else {
      ReadUnit(from, x);
    }
  }
  static CAFFE_FORCE_INLINE void Add(const FloatVector& x, const FloatVector& w,
                                     FloatVector& sums) {
    __asm__("vpdpbusd %1, %2, %0" : "+v"(sums) : "v"(w), "v"(x));
  }
  static CAFFE_FORCE_INLINE void ToFloats(FloatVector& sums) {
    __asm__("vcvtdq2ps %1, %0" : "=v"(sums) : "v"(sums));
  }
};

// Adds products of `units` consecutive units to the sums of kCount pixels, which are `step` bytes
// apart. `panel` has kBlock units of weights for each of them.
template <typename Sums, int kCount, int kVectors>
inline CAFFE_FORCE_INLINE void AddProducts(const char* from, int64_t step, int64_t units,
                                           const char* panel,
                                           FloatVector (&sums)[kCount][kVectors]) {
  for (int64_t i = 0; i < units; ++i, panel += kBlock * kUnitBytes, from += kUnitBytes) {
    FloatVector weights[kVectors];
    Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
      std::memcpy(&weights[v], panel + v * sizeof(FloatVector), sizeof(FloatVector));
    });
    Unroll<kCount>([&](auto pixel) CAFFE_FORCE_INLINE {
      FloatVector value;
      Sums::Read(from + pixel * step, value);
      Unroll<kVectors>([&](auto v)
                           CAFFE_FORCE_INLINE { Sums::Add(value, weights[v], sums[pixel][v]); });
    });
  }
}

// Computes kCount pixels from `first` on.
template <typename Sums, int kCount, int kVectors, typename End, typename Row>
inline CAFFE_FORCE_INLINE void SumPixels(const PixelRow& x, int64_t first, const char* panel,
                                         const End& end, const Row& y) {
  FloatVector sums[kCount][kVectors];
  Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
    FloatVector begin;
    end.Begin(v * kFloatLanes, begin);
    Unroll<kCount>([&](auto pixel) CAFFE_FORCE_INLINE { sums[pixel][v] = begin; });
  });
  const int64_t step = x.units * kUnitBytes;
  AddProducts<Sums>(x.pixels + first * step, step, x.units, panel, sums);
  __asm__ volatile("" ::: "memory");  // keeps the operands of `end` out of registers until here
  Unroll<kCount>([&](auto pixel) CAFFE_FORCE_INLINE {
    Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
      Sums::ToFloats(sums[pixel][v]);
      FloatVector values;
      end.Finish(v * kFloatLanes, sums[pixel][v], values);
      y.Put(first + pixel, v * kFloatLanes, values);
    });
  });
}

// `end` and `y` are copies, which stay in registers: stores may change what a reference refers to.
template <typename Sums, int kVectors, typename End, typename Row>
inline CAFFE_FORCE_INLINE void SumRowBy(const PixelRow x, const char* panel, const End end,
                                        const Row y) {
  int64_t first = 0;
  const auto sum = [&](auto count) CAFFE_FORCE_INLINE {
    for (; first + count <= x.width; first += count)
      SumPixels<Sums, count, kVectors>(x, first, panel, end, y);
  };
  sum(std::integral_constant<int, kPixels>{});
  sum(std::integral_constant<int, kPixels / 2>{});
  sum(std::integral_constant<int, 3>{});
  sum(std::integral_constant<int, 1>{});
}

// Computes a row of results for kVectors vectors of channels. The first parameter is x's type:
// float requires HasWideVectors(), bfloat16 also MultipliesBFloat16(), and 8-bit numbers also
// OneDnnMultiplies8Bits().
template <int kVectors>
CAFFE_WIDE_VECTORS void SumRow(TypeTag<float>, const PixelRow& x, const char* panel,
                               const SumEnd& end, const FloatRow& y) {
  SumRowBy<SumsOfFloats, kVectors>(x, panel, end, y);
}
template <int kVectors>
CAFFE_WIDE_VECTORS void SumRow(TypeTag<bfloat16>, const PixelRow& x, const char* panel,
                               const SumEnd& end, const FloatRow& y) {
  SumRowBy<SumsOfPairs, kVectors>(x, panel, end, y);
}
template <int kVectors>
CAFFE_WIDE_VECTORS void SumRow(TypeTag<uint8_t>, const PixelRow& x, const char* panel,
                               const NumberEnd& end, const ByteRow& y) {
  SumRowBy<SumsOfNumbers<false>, kVectors>(x, panel, end, y);
}
template <int kVectors>
CAFFE_WIDE_VECTORS void SumRow(TypeTag<int8_t>, const PixelRow& x, const char* panel,
                               const NumberEnd& end, const ByteRow& y) {
  SumRowBy<SumsOfNumbers<true>, kVectors>(x, panel, end, y);
}
#endif

}  // namespace caffe::cpu
