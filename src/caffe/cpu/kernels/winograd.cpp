#include "caffe/cpu/kernels/winograd.hpp"

#include <array>

#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {
namespace {

// d - d'', d' + d'', d'' - d', d' - d''' of four numbers in a row or column.
inline CAFFE_FORCE_INLINE void TransformPatch(FloatVector& a, FloatVector& b, FloatVector& c,
                                              FloatVector& d) {
  const FloatVector first = a - c, second = b + c, third = c - b, last = b - d;
  a = first, b = second, c = third, d = last;
}

// Transforms the patch that a tile reads: a vector of channels for each position, `stride` apart.
CAFFE_CPU_CLONES void ReadPatch(const std::array<const float*, kPositions>& pixels,
                                int64_t channels, int64_t stride, float* to) {
  for (int64_t c = 0; c < channels; c += kFloatLanes) {
    FloatVector d[kPositions];
    for (int64_t i = 0; i < kPositions; ++i) Load(pixels[i] + c, d[i]);
    for (int64_t i = 0; i < kPatch; ++i) TransformPatch(d[i], d[4 + i], d[8 + i], d[12 + i]);
    for (int64_t i = 0; i < kPositions; i += 4) TransformPatch(d[i], d[i + 1], d[i + 2], d[i + 3]);
    for (int64_t i = 0; i < kPositions; ++i) Store(d[i], to + i * stride + c);
  }
}

}  // namespace

std::optional<Refusal> RefuseUntiled(const ops::ConvGeometry& geometry, const OperandDesc& x,
                                     const OperandDesc& y) {
  constexpr int64_t kFewestChannels = 32;
  if (geometry.spatial_axes() != 2 || geometry.group != 1 || !AreAll(geometry.kernel, 3) ||
      !AreAll(geometry.stride, 1) || !AreAll(geometry.dilation, 1)) {
    return Refusal{"only windows of 3x3 without strides, dilation and groups"};
  }
  if (x.layout != Layout::kChannelsLast || y.layout != Layout::kChannelsLast)
    return Refusal{"only images with channels last"};
  for (const OperandDesc* image : {&x, &y}) {
    if (image->shape[1] % kFloatLanes != 0 || image->shape[1] < kFewestChannels)
      return Refusal{"only channels in multiples of 16, at least 32"};
  }
  if (x.count() == 0 || y.count() == 0) return Refusal{"an empty batch"};
  return RefuseLarge(geometry, x.shape);
}

void ReadPatches(const Tiles& t, const float* x, const float* zeros, int64_t first, int64_t tiles,
                 int64_t stride, float* patches) {
  for (int64_t i = 0; i < tiles; ++i) {
    const TilePlace place(t, first + i);
    std::array<const float*, kPositions> pixels;
    for (int64_t p = 0; p < kPositions; ++p) {
      const int64_t row = place.row - t.pad_y + p / kPatch;
      const int64_t column = place.column - t.pad_x + p % kPatch;
      const bool is_inside = row >= 0 && row < t.height && column >= 0 && column < t.width;
      pixels[p] =
          is_inside ? x + ((place.item * t.height + row) * t.width + column) * t.channels : zeros;
    }
    ReadPatch(pixels, t.channels, stride, patches + i * t.channels);
  }
}

}  // namespace caffe::cpu
