// Shared by the depthwise convolutions of channels-last images: a thread owns a pack of
// neighbouring channels, and computes cells of neighbouring results, which share the pixels that
// they read.
//
// No load depends on a branch: outside the image a thread reads the nearest pixel inside, and takes
// zeros in its place.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "caffe/cuda/kernels/max_pool_packs.cuh"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// Channels of a thread. Eight of 16 bits would make 16 bytes, but their sums and filters do not fit
// into registers.
inline constexpr int kDepthwisePack = 4;

// Returns why our depthwise kernels cannot compute a convolution of x to y; empty if they can.
inline std::string UnfitForDepthwise(const ops::ConvGeometry& g, const TensorDesc& x,
                                     const TensorDesc& y) {
  constexpr int64_t kMostExtent = 1 << 28;  // sums of a few of them are int
  if (g.spatial_axes() != 2) return "only images, with two spatial axes";
  if (g.group < 2 || g.group != x.shape[1]) return "channels are not groups of one";
  if (y.shape[1] != x.shape[1]) return "a channel has several filters";
  if (x.dtype != y.dtype) return "x and y are of two types";
  if (x.layout != Layout::kChannelsLast || y.layout != Layout::kChannelsLast)
    return "only where channels lie last";
  if (x.shape[1] % kDepthwisePack != 0) return "channels do not lie in whole packs of four";
  for (int i = 0; i < 2; ++i) {
    if (x.shape[2 + i] + 2 * g.pad[i] + g.stride[i] + g.Span(i) > kMostExtent)
      return "an extent is too large";
  }
  if (std::max(x.count(), y.count()) > kMostDividend) return "2^31 elements or more";
  return "";
}

// The kernels are only for convolutions in groups.
template <typename T>
bool HasGroups(const Op& op) {
  return op.As<T>()->geometry.group > 1;
}

inline std::vector<Signature> DepthwiseSignatures() {
  return {{DType::kFloat, DType::kFloat},
          {DType::kFloat16, DType::kFloat},
          {DType::kBFloat16, DType::kFloat}};
}

template <typename Run>
void VisitDepthwiseType(DType dtype, const Run& run) {
  if (dtype == DType::kFloat16) return run(TypeTag<float16>{});
  if (dtype == DType::kBFloat16) return run(TypeTag<bfloat16>{});
  run(TypeTag<float>{});
}

// The extent of square filters that are known at compile time (3 or 5), or 0 for others.
inline int KnownFilter(const ops::ConvGeometry& g) {
  const int64_t size = g.kernel[0], stride = g.stride[0];
  const bool is_known = (size == 3 || size == 5) && g.kernel[1] == size && stride <= 2 &&
                        g.stride[1] == stride && g.dilation[0] == 1 && g.dilation[1] == 1;
  return is_known ? static_cast<int>(size) : 0;
}

// Calls run(extent, stride), as constants, for a KnownFilter().
template <typename Run>
void VisitKnownFilter(const ops::ConvGeometry& g, const Run& run) {
  const auto visit = [&](auto stride) {
    if (g.kernel[0] == 3) return run(std::integral_constant<int, 3>{}, stride);
    run(std::integral_constant<int, 5>{}, stride);
  };
  if (g.stride[0] == 1) return visit(std::integral_constant<int, 1>{});
  visit(std::integral_constant<int, 2>{});
}

// Channels cut into tiles of packs, as even as possible. A block has a tile, and shares the cells
// with `parts` - 1 other blocks.
struct DepthwiseTiles {
  int packs = 0;    // of a pixel
  int columns = 0;  // of a tile, in packs
  int tiles = 0;
  int block_cells = 0;
  uint32_t cells = 0, parts = 1;

  DepthwiseTiles(int64_t pixel_packs, int64_t cell_count, int64_t blocks,
                 int64_t most_columns = kWarpThreads)
      : packs(static_cast<int>(pixel_packs)), cells(static_cast<uint32_t>(cell_count)) {
    const int64_t least_tiles = (packs + most_columns - 1) / most_columns;
    columns = static_cast<int>((packs + least_tiles - 1) / least_tiles);
    tiles = (packs + columns - 1) / columns;
    block_cells = kBlockThreads / columns;
    const int64_t most = (cell_count + block_cells - 1) / block_cells;
    parts = static_cast<uint32_t>(
        std::clamp<int64_t>(most, 1, MostParts(pixel_packs, blocks, most_columns)));
  }
  // The number of parts for many cells.
  static int64_t MostParts(int64_t pixel_packs, int64_t blocks,
                           int64_t most_columns = kWarpThreads) {
    const int64_t tiles = (pixel_packs + most_columns - 1) / most_columns;
    return std::max<int64_t>(blocks / std::max<int64_t>(tiles, 1), 1);
  }
  int64_t blocks() const { return int64_t{tiles} * parts; }

  __device__ uint32_t tile() const { return blockIdx.x % static_cast<unsigned>(tiles); }
  __device__ uint32_t part() const { return blockIdx.x / static_cast<unsigned>(tiles) % parts; }
  // The number of the copy, if there are several of all blocks.
  __device__ uint32_t copy() const { return blockIdx.x / (tiles * parts); }
  __device__ int column() const { return static_cast<int>(threadIdx.x) % columns; }
  // The thread's pack of channels.
  __device__ uint32_t pack() const { return tile() * columns + column(); }
  __device__ uint32_t first_cell() const {
    const unsigned row = threadIdx.x / static_cast<unsigned>(columns);
    const bool has_work =
        row < static_cast<unsigned>(block_cells) && pack() < static_cast<unsigned>(packs);
    return has_work ? part() * block_cells + row : cells;
  }
  __device__ uint32_t stride() const { return parts * block_cells; }
};

// The same pack, or zeros if `mask` is 0 and not ~0.
template <typename T, int N>
__device__ inline Pack<T, N> Masked(const Pack<T, N>& x, uint32_t mask) {
  using Bits = std::conditional_t<sizeof(T) * N % 4 == 0, uint32_t, uint16_t>;
  constexpr int kWords = static_cast<int>(sizeof(T) * N / sizeof(Bits));
  auto words = std::bit_cast<Pack<Bits, kWords>>(x);
#pragma unroll
  for (int i = 0; i < kWords; ++i) words.values[i] &= static_cast<Bits>(mask);
  return std::bit_cast<Pack<T, N>>(words);
}

// A row or column of an image: its index, or that of the nearest one inside with a mask of 0.
struct MaskedLine {
  int at;
  uint32_t mask;

  MaskedLine() = default;
  __device__ MaskedLine(int place, int places)
      : at(Clamp(place, 0, places - 1)), mask(at == place ? ~0u : 0) {}
};

}  // namespace caffe::cuda
