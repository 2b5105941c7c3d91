// Winograd's minimal filtering F(2x2, 3x3) (Lavin and Gray 2016, "Fast Algorithms for Convolutional
// Neural Networks"): 16 multiplications for each tile of 2x2 results instead of 36. Images are
// channels-last, so each step works on vectors of channels. The transforms only add, subtract and
// halve, so errors stay near those of direct sums.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caffe/cpu/kernels/float_vector.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/shape.hpp"

namespace caffe::cpu {

constexpr int64_t kTile = 2, kPatch = 4, kPositions = kPatch * kPatch;

// The tiles of y, a convolution's result or the gradient at it.
struct Tiles {
  int64_t channels, outputs, height, width, rows, columns, pad_y, pad_x;
  int64_t tiles_y, tiles_x, count;

  // Windows of 3x3 with stride 1 over x, which is padded by `pad`.
  Tiles(const std::vector<int64_t>& pad, const Shape& x, const Shape& y)
      : channels(x[1]),
        outputs(y[1]),
        height(x[2]),
        width(x[3]),
        rows(y[2]),
        columns(y[3]),
        pad_y(pad[0]),
        pad_x(pad[1]),
        tiles_y((rows + kTile - 1) / kTile),
        tiles_x((columns + kTile - 1) / kTile),
        count(x[0] * tiles_y * tiles_x) {}
};

struct TilePlace {
  int64_t item, row, column;  // of the tile's first result

  TilePlace(const Tiles& t, int64_t tile)
      : item(tile / (t.tiles_y * t.tiles_x)),
        row(tile / t.tiles_x % t.tiles_y * kTile),
        column(tile % t.tiles_x * kTile) {}
};

// For convolutions that the algorithm does not serve. x and y: an image and the convolution's
// result, or the gradients at them, in either order.
std::optional<Refusal> RefuseUntiled(const ops::ConvGeometry& geometry, const OperandDesc& x,
                                     const OperandDesc& y);

// Transforms the patches that `tiles` tiles from `first` on read: for each of the 16 positions,
// `stride` floats apart, a row of channels for each tile. `zeros` has as many as channels.
void ReadPatches(const Tiles& t, const float* x, const float* zeros, int64_t first, int64_t tiles,
                 int64_t stride, float* patches);

}  // namespace caffe::cpu
