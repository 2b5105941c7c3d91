// Winograd's minimal filtering (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural
// Networks") for 3x3 convolutions: a tile of m x m results reads a patch of m+2 x m+2 pixels and
// takes as many multiplications for each pair of channels, in place of 9 m^2. Images are
// channels-last, so each step works on vectors of channels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "caffe/cpu/kernels/float_vector.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/shape.hpp"

namespace caffe::cpu {

// F(2x2, 3x3): 16 multiplications in place of 36. The transforms only add, subtract and halve, so
// errors stay near those of direct sums. The functions transform a row or a column.
struct SmallTile {
  static constexpr int kSize = 2, kPatch = 4;
  using Row = FloatVector[kSize];
  using PatchRow = FloatVector[kPatch];
  using FilterRow = FloatVector[3];

  static CAFFE_FORCE_INLINE void Patch(const PatchRow& d, PatchRow& to) {
    to[0] = d[0] - d[2], to[1] = d[1] + d[2], to[2] = d[2] - d[1], to[3] = d[1] - d[3];
  }
  static CAFFE_FORCE_INLINE void Results(const PatchRow& m, Row& y) {
    y[0] = m[0] + m[1] + m[2], y[1] = m[1] - m[2] - m[3];
  }
  static CAFFE_FORCE_INLINE void Filter(const FilterRow& g, PatchRow& to) {
    const FloatVector even = 0.5F * (g[0] + g[2]), odd = 0.5F * g[1];
    to[0] = g[0], to[1] = even + odd, to[2] = even - odd, to[3] = g[2];
  }
  // The transposes of Results() and Filter(), for gradients at filters.
  static CAFFE_FORCE_INLINE void Spread(const Row& y, PatchRow& to) {
    to[0] = y[0], to[1] = y[0] + y[1], to[2] = y[0] - y[1], to[3] = -y[1];
  }
  static CAFFE_FORCE_INLINE void Gather(const PatchRow& m, FilterRow& g) {
    const FloatVector even = 0.5F * (m[1] + m[2]);
    g[0] = m[0] + even, g[1] = 0.5F * (m[1] - m[2]), g[2] = even + m[3];
  }
};

// F(4x4, 3x3): 36 multiplications in place of 144. Errors are some ten times those of direct sums,
// which is still far less than rounding to 16 bits.
struct LargeTile {
  static constexpr int kSize = 4, kPatch = 6;
  using Row = FloatVector[kSize];
  using PatchRow = FloatVector[kPatch];
  using FilterRow = FloatVector[3];

  static CAFFE_FORCE_INLINE void Patch(const PatchRow& d, PatchRow& to) {
    const FloatVector even = d[4] - 4.0F * d[2], odd = d[3] - 4.0F * d[1];
    const FloatVector near = d[4] - d[2], far = 2.0F * (d[3] - d[1]);
    to[0] = 4.0F * d[0] - 5.0F * d[2] + d[4];
    to[1] = even + odd, to[2] = even - odd, to[3] = near + far, to[4] = near - far;
    to[5] = 4.0F * d[1] - 5.0F * d[3] + d[5];
  }
  static CAFFE_FORCE_INLINE void Results(const PatchRow& m, Row& y) {
    const FloatVector sum = m[1] + m[2], difference = m[1] - m[2];
    const FloatVector far_sum = m[3] + m[4], far_difference = m[3] - m[4];
    y[0] = m[0] + sum + far_sum;
    y[1] = difference + 2.0F * far_difference;
    y[2] = sum + 4.0F * far_sum;
    y[3] = difference + 8.0F * far_difference + m[5];
  }
  static CAFFE_FORCE_INLINE void Filter(const FilterRow& g, PatchRow& to) {
    const FloatVector even = (-1.0F / 6) * (g[0] + g[2]), odd = (1.0F / 6) * g[1];
    const FloatVector far_even = (1.0F / 24) * g[0] + (1.0F / 6) * g[2], far_odd = 0.5F * odd;
    to[0] = 0.25F * g[0], to[1] = even - odd, to[2] = even + odd;
    to[3] = far_even + far_odd, to[4] = far_even - far_odd, to[5] = g[2];
  }
  static CAFFE_FORCE_INLINE void Spread(const Row& y, PatchRow& to) {
    const FloatVector even = y[0] + y[2], odd = y[1] + y[3];
    const FloatVector far_even = y[0] + 4.0F * y[2], far_odd = 2.0F * y[1] + 8.0F * y[3];
    to[0] = y[0], to[1] = even + odd, to[2] = even - odd;
    to[3] = far_even + far_odd, to[4] = far_even - far_odd, to[5] = y[3];
  }
  static CAFFE_FORCE_INLINE void Gather(const PatchRow& m, FilterRow& g) {
    const FloatVector sum = (-1.0F / 6) * (m[1] + m[2]), difference = (1.0F / 6) * (m[2] - m[1]);
    const FloatVector far_sum = (1.0F / 24) * (m[3] + m[4]);
    g[0] = 0.25F * m[0] + sum + far_sum;
    g[1] = difference + (1.0F / 12) * (m[3] - m[4]);
    g[2] = sum + 4.0F * far_sum + m[5];
  }
};

// The tiles that images of this type have: 16 bits hide the errors of large ones.
template <typename T>
using TileOf = std::conditional_t<sizeof(T) == 2, LargeTile, SmallTile>;

template <typename Tile>
inline constexpr int kPositions = Tile::kPatch* Tile::kPatch;

// Transforms the columns of a square and then its rows, from kFrom x kFrom to kTo x kTo vectors.
// Calls read(row, column, vector) and write(row, column, vector).
template <int kFrom, int kTo, typename Transform, typename Read, typename Write>
inline CAFFE_FORCE_INLINE void TransformSquare(const Transform& transform, const Read& read,
                                               const Write& write) {
  FloatVector half[kTo][kFrom];
  Unroll<kFrom>([&](auto column) CAFFE_FORCE_INLINE {
    FloatVector from[kFrom], to[kTo];
    Unroll<kFrom>([&](auto row) CAFFE_FORCE_INLINE { read(row, column, from[row]); });
    transform(from, to);
    Unroll<kTo>([&](auto row) CAFFE_FORCE_INLINE { half[row][column] = to[row]; });
  });
  Unroll<kTo>([&](auto row) CAFFE_FORCE_INLINE {
    FloatVector to[kTo];
    transform(half[row], to);
    Unroll<kTo>([&](auto column) CAFFE_FORCE_INLINE { write(row, column, to[column]); });
  });
}

// The tiles of y, a convolution's result or the gradient at it.
struct Tiles {
  int64_t size, channels, outputs, height, width, rows, columns, pad_y, pad_x;
  int64_t tiles_y, tiles_x, count;

  // Windows of 3x3 with stride 1 over x, which is padded by `pad`. `size`: of a tile's edge.
  Tiles(int64_t size, const std::vector<int64_t>& pad, const Shape& x, const Shape& y)
      : size(size),
        channels(x[1]),
        outputs(y[1]),
        height(x[2]),
        width(x[3]),
        rows(y[2]),
        columns(y[3]),
        pad_y(pad[0]),
        pad_x(pad[1]),
        tiles_y((rows + size - 1) / size),
        tiles_x((columns + size - 1) / size),
        count(x[0] * tiles_y * tiles_x) {}
};

struct TilePlace {
  int64_t item, row, column;  // of the tile's first result

  TilePlace(const Tiles& t, int64_t tile)
      : item(tile / (t.tiles_y * t.tiles_x)),
        row(tile / t.tiles_x % t.tiles_y * t.size),
        column(tile % t.tiles_x * t.size) {}
};

// Addresses of a tile's results in an image; `outside` for those that it does not have.
// Pixels are `step` numbers apart.
template <typename Tile, typename T>
std::array<T*, Tile::kSize * Tile::kSize> ResultsOf(const Tiles& t, int64_t tile, T* image,
                                                    int64_t step, T* outside) {
  const TilePlace place(t, tile);
  std::array<T*, Tile::kSize * Tile::kSize> results;
  for (int64_t p = 0; p < Tile::kSize * Tile::kSize; ++p) {
    const int64_t row = place.row + p / Tile::kSize, column = place.column + p % Tile::kSize;
    const bool is_inside = row < t.rows && column < t.columns;
    results[p] =
        is_inside ? image + ((place.item * t.rows + row) * t.columns + column) * step : outside;
  }
  return results;
}

// Types of images that the kernels serve.
inline std::vector<Signature> WinogradSignatures() {
  return {{DType::kFloat, DType::kFloat}, {DType::kBFloat16, DType::kFloat}};
}

// For convolutions that the algorithm does not serve. x and y: an image and the convolution's
// result, or the gradients at them, in either order. `outputs`: channels of y that are meant.
std::optional<Refusal> RefuseUntiled(const ops::ConvGeometry& geometry, const OperandDesc& x,
                                     const OperandDesc& y, int64_t outputs);

// Transforms the patch that a tile reads: a vector of channels for each position, `stride` apart.
template <typename Tile, typename T>
CAFFE_CPU_CLONES void ReadPatch(const std::array<const T*, kPositions<Tile>>& pixels,
                                int64_t channels, int64_t stride, float* to) {
  constexpr int kPatch = Tile::kPatch;
  for (int64_t c = 0; c < channels; c += kFloatLanes) {
    TransformSquare<kPatch, kPatch>(
        [](const auto& from, auto& values) CAFFE_FORCE_INLINE { Tile::Patch(from, values); },
        [&](auto row, auto column, FloatVector& value)
            CAFFE_FORCE_INLINE { Load(pixels[row * kPatch + column] + c, value); },
        [&](auto row, auto column, const FloatVector& value)
            CAFFE_FORCE_INLINE { Store(value, to + (row * kPatch + column) * stride + c); });
  }
}

// Transforms the patches that `tiles` tiles from `first` on read: for each position, `stride`
// floats apart, a row of channels for each tile. `zeros` has as many as channels.
template <typename Tile, typename T>
void ReadPatches(const Tiles& t, const T* x, const T* zeros, int64_t first, int64_t tiles,
                 int64_t stride, float* patches) {
  for (int64_t i = 0; i < tiles; ++i) {
    const TilePlace place(t, first + i);
    std::array<const T*, kPositions<Tile>> pixels;
    for (int64_t p = 0; p < kPositions<Tile>; ++p) {
      const int64_t row = place.row - t.pad_y + p / Tile::kPatch;
      const int64_t column = place.column - t.pad_x + p % Tile::kPatch;
      const bool is_inside = row >= 0 && row < t.height && column >= 0 && column < t.width;
      pixels[p] =
          is_inside ? x + ((place.item * t.height + row) * t.width + column) * t.channels : zeros;
    }
    ReadPatch<Tile>(pixels, t.channels, stride, patches + i * t.channels);
  }
}

}  // namespace caffe::cpu
