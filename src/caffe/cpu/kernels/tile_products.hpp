// Sums of products with a block of output channels by AMX: products of tiles, matrices of up to 16
// rows of 64 bytes in registers (Intel, "Architecture Instruction Set Extensions Programming
// Reference", chapter 3). One instruction multiplies 16 pixels of 32 bfloat16 or 64 8-bit numbers
// with 16 output channels. Pixels are read where they are, weights in weight_panels.hpp's order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "caffe/core/instructions.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/ops/conv.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {

inline constexpr int64_t kTileRows = 16, kTileRowBytes = 64;
inline constexpr int64_t kTileUnits = kTileRowBytes / kUnitBytes;
// Tiles of pixels whose sums are computed together: with two of weights and the sums they take all
// eight registers.
inline constexpr int kTilePair = 2;

// True if this process may multiply tiles. ONEDNN_MAX_CPU_ISA applies.
inline bool MayMultiplyTiles() {
  return OneDnnMultipliesTiles() && InstructionsOfThisProcessor().may_use_tiles;
}

// For processors that lack the instructions: a type that no op has, because passes look at types.
inline KernelTraits UnlessTiles(KernelTraits traits) {
  if (!MayMultiplyTiles()) traits.signatures = {{DType::kUInt8, DType::kFloat}};
  return traits;
}

// True if the gradient of so many weights is faster by tiles than by oneDNN: rearranging the images
// takes longer than the products otherwise. `x`, `dy`: (items,channels,...).
inline bool AreTilesFaster(const Shape& x, const Shape& dy, const ops::ConvGeometry& g) {
  return x[1] * dy[1] * g.kernel[0] * g.kernel[1] >= 1 << 18;
}

// How runs of pixels are cut into tiles of equal sizes. The last one may begin with pixels of the
// one before.
struct TileCut {
  int64_t tiles, rows;   // along the pixels; pixels of a tile
  int64_t steps, units;  // along the units of a run; units of a row of a tile

  TileCut(int64_t pixels, int64_t run_units)
      : tiles((pixels + kTileRows - 1) / kTileRows),
        rows((pixels + tiles - 1) / tiles),
        steps((run_units + kTileUnits - 1) / kTileUnits) {
    while (run_units % steps != 0) ++steps;
    units = run_units / steps;
  }
  // True if tiles are so narrow that half of the work is in vain.
  bool is_wasteful() const { return steps > 2 && units < kTileUnits / 2; }
  // The first pixel of a tile.
  int64_t FirstOf(int64_t tile, int64_t pixels) const {
    return std::min(tile * rows, pixels - rows);
  }
};

// Gives this thread's tiles their sizes while it exists.
class TilesInUse {
 public:
  explicit TilesInUse(const TileCut& cut) {
    for (int tile = 0; tile < kWeights + kBlockVectors; ++tile) {
      const bool is_weights = tile >= kWeights, is_pixels = tile >= kPixels && !is_weights;
      sizes_.rows[tile] = static_cast<uint8_t>(is_weights ? cut.units : cut.rows);
      sizes_.row_bytes[tile] =
          static_cast<uint16_t>(is_pixels ? cut.units * kUnitBytes : kTileRowBytes);
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(sizes_));
  }
  ~TilesInUse() { __asm__ volatile("tilerelease"); }
  TilesInUse(const TilesInUse&) = delete;
  TilesInUse& operator=(const TilesInUse&) = delete;

  // Indices of the first tile of each kind; the first ones are of sums.
  static constexpr int kPixels = kTilePair * kBlockVectors, kWeights = kPixels + kTilePair;

 private:
  struct alignas(64) Sizes {
    uint8_t palette = 1, start_row = 0;
    std::array<uint8_t, 14> reserved = {};
    std::array<uint16_t, 16> row_bytes = {};
    std::array<uint8_t, 16> rows = {};
  } sizes_;
};

template <int kTile>
inline CAFFE_FORCE_INLINE void LoadTile(const void* from, int64_t step) {
  __asm__ volatile("tileloadd (%0,%1), %%tmm%c2" ::"r"(from), "r"(step), "i"(kTile) : "memory");
}
template <int kTile>
inline CAFFE_FORCE_INLINE void StoreTile(void* to, int64_t step) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1)" ::"r"(to), "r"(step), "i"(kTile) : "memory");
}

// How tiles are multiplied. Sums of 8-bit numbers are integers.
struct TilesOfPairs {
  using Sums = SumsOfFloats;
  template <int kSum, int kPixels, int kWeights>
  static CAFFE_FORCE_INLINE void Add() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kPixels),
                     "i"(kWeights));
  }
};
template <bool kIsSigned>
struct TilesOfNumbers {
  using Sums = SumsOfNumbers<kIsSigned>;
  template <int kSum, int kPixels, int kWeights>
  static CAFFE_FORCE_INLINE void Add() {
    if constexpr (kIsSigned) {
      __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kPixels),
                       "i"(kWeights));
    } else {
      __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kPixels),
                       "i"(kWeights));
    }
  }
};

// The data that windows of a tile's pixels read: contiguous runs, each in `steps` products.
struct TileReads {
  const int64_t* runs;  // offsets from the first pixel's first run, in bytes
  int64_t run_count, steps;
  int64_t units;       // of a row of a tile
  int64_t pixel_step;  // from pixel to pixel, in bytes
  // How many steps ahead weights are prefetched: registers hide little of the caches' latency.
  int64_t steps_ahead = 1;

  int64_t step_bytes() const { return units * kUnitBytes * kBlock; }  // of weights
};

// Pairs of tiles whose sums are computed together. Those of the first pair bring a slice of the
// weights into the first-level cache, where the others find it.
inline constexpr int kTilePairs = 2;
inline constexpr int kTileGroup = kTilePairs * kTilePair;
inline constexpr int64_t kSliceSteps = 12;

// Steps of some runs.
struct TileSlice {
  int64_t run, runs;    // the first, and how many
  int64_t step, steps;  // of each run
};

// Adds the products of a slice to the sums of kTiles tiles of `rows` pixels each and kVectors
// vectors of channels. `begins`: what the sums begin with; null: with what they are. The sums of a
// pixel are kBlock apart from the next one's.
template <typename Product, int kTiles, int kVectors, bool kPrefetches>
inline CAFFE_FORCE_INLINE void AddTiles(const TileReads& reads, const char* const* pixels,
                                        const TileSlice& slice, const char* panel,
                                        const float* begins, int64_t rows, FloatVector* sums) {
  constexpr int kPixels = TilesInUse::kPixels, kWeights = TilesInUse::kWeights;
  constexpr int64_t kSumStep = kBlock * static_cast<int64_t>(sizeof(float));
  const auto for_each = [](const auto& fn) CAFFE_FORCE_INLINE {
    Unroll<kTiles>([&](auto tile) CAFFE_FORCE_INLINE {
      Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE { fn(tile, v); });
    });
  };
  for_each([&](auto tile, auto v) CAFFE_FORCE_INLINE {
    constexpr int kSum = tile * kBlockVectors + v;
    if (begins != nullptr) {
      LoadTile<kSum>(begins + v * kFloatLanes, 0);
    } else {
      LoadTile<kSum>(sums + tile * rows * kBlockVectors + v, kSumStep);
    }
  });
  const int64_t pixel_step = reads.pixel_step, row_bytes = reads.units * kUnitBytes;
  const int64_t step_bytes = reads.step_bytes(), ahead = reads.steps_ahead * step_bytes;
  for (int64_t run = slice.run; run < slice.run + slice.runs; ++run) {
    const int64_t offset = reads.runs[run] + slice.step * row_bytes;
    const char* from[kTiles];
    Unroll<kTiles>([&](auto tile) CAFFE_FORCE_INLINE { from[tile] = pixels[tile] + offset; });
    for (int64_t step = 0; step < slice.steps; ++step, panel += step_bytes) {
      Unroll<kTiles>([&](auto tile) CAFFE_FORCE_INLINE {
        LoadTile<kPixels + tile>(from[tile], pixel_step);
        from[tile] += row_bytes;
      });
      Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
        LoadTile<kWeights + v>(panel + v * kTileRowBytes, kBlock * kUnitBytes);
      });
      if constexpr (kPrefetches) {
        for (int64_t line = 0; line < step_bytes; line += kTileRowBytes)
          __builtin_prefetch(panel + ahead + line);
      }
      for_each([&](auto tile, auto v) CAFFE_FORCE_INLINE {
        Product::template Add<tile * kBlockVectors + v, kPixels + tile, kWeights + v>();
      });
    }
  }
  for_each([&](auto tile, auto v) CAFFE_FORCE_INLINE {
    StoreTile<tile * kBlockVectors + v>(sums + tile * rows * kBlockVectors + v, kSumStep);
  });
}

// Sums of kTiles tiles, one, two or kTileGroup. `pixels`: where their first pixels are read.
template <typename Product, int kTiles, int kVectors>
inline CAFFE_FORCE_INLINE void SumTiles(const TileReads& reads,
                                        const std::array<const char*, kTileGroup>& pixels,
                                        const char* panel, const float* begins, int64_t rows,
                                        FloatVector* sums) {
  constexpr int kTogether = std::min(kTiles, kTilePair);
  const int64_t most = kTiles == kTogether ? std::numeric_limits<int64_t>::max() : kSliceSteps;
  TileSlice slice = {0, std::max<int64_t>(1, most / reads.steps), 0, std::min(most, reads.steps)};
  while (slice.run < reads.run_count) {
    TileSlice part = slice;
    part.runs = std::min(slice.runs, reads.run_count - slice.run);
    part.steps = std::min(slice.steps, reads.steps - slice.step);
    Unroll<kTiles / kTogether>([&](auto i) CAFFE_FORCE_INLINE {
      constexpr int kFirst = i * kTogether;
      AddTiles<Product, kTogether, kVectors, kFirst == 0>(reads, pixels.data() + kFirst, part,
                                                          panel, begins, rows,
                                                          sums + kFirst * rows * kBlockVectors);
    });
    begins = nullptr;
    panel += part.runs * part.steps * reads.step_bytes();
    slice.step += part.steps;
    if (slice.step == reads.steps) slice.run += part.runs, slice.step = 0;
  }
}

// As SumRow(), for data of type T. Requires MayMultiplyTiles(), TilesInUse for `cut`, and sums that
// begin without an excess.
template <typename T>
using TileProduct = std::conditional_t<std::is_same_v<T, bfloat16>, TilesOfPairs,
                                       TilesOfNumbers<std::is_same_v<T, int8_t>>>;
template <int kVectors, typename T, typename End, typename Row>
CAFFE_WIDE_VECTORS void SumRowByTiles(TypeTag<T>, const PixelRow& x, const TileCut& cut,
                                      const char* panel, const End& of_block, const Row& to) {
  const End end = of_block;  // copies, which stay in registers
  const Row y = to;
  constexpr int64_t kNoOffset = 0;
  const TileReads reads = {&kNoOffset, 1, cut.steps, cut.units, x.units * kUnitBytes};
  FloatVector begins[kVectors], sums[kTilePair * kTileRows * kBlockVectors];
  Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE { end.Begin(v * kFloatLanes, begins[v]); });
  const auto sum = [&](int64_t tile, auto tiles) CAFFE_FORCE_INLINE {
    std::array<const char*, kTileGroup> from = {};
    for (int i = 0; i < tiles; ++i)
      from[i] = x.pixels + cut.FirstOf(tile + i, x.width) * reads.pixel_step;
    SumTiles<TileProduct<T>, tiles, kVectors>(
        reads, from, panel, reinterpret_cast<const float*>(begins), cut.rows, sums);
    for (int i = 0; i < tiles; ++i) {
      const int64_t first = cut.FirstOf(tile + i, x.width);
      const FloatVector* pixel = sums + i * cut.rows * kBlockVectors;
      for (int64_t row = 0; row < cut.rows; ++row, pixel += kBlockVectors) {
        Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
          FloatVector value = pixel[v], values;
          TileProduct<T>::Sums::ToFloats(value);
          end.Finish(v * kFloatLanes, value, values);
          y.Put(first + row, v * kFloatLanes, values);
        });
      }
    }
  };
  int64_t tile = 0;
  for (; tile + 1 < cut.tiles; tile += kTilePair)
    sum(tile, std::integral_constant<int, kTilePair>{});
  if (tile < cut.tiles) sum(tile, std::integral_constant<int, 1>{});
}

}  // namespace caffe::cpu
#endif
