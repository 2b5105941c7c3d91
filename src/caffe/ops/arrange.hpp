// Ops that move elements: permutations, repetitions, crops, gathered rows.
#pragma once

#include <numeric>
#include <ranges>
#include <string>
#include <vector>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// A tensor's axes in memory order, outermost first.
inline std::vector<int> MemoryAxes(const TensorDesc& tensor) {
  if (tensor.layout == Layout::kChannelsLast) return {0, 2, 3, 1};
  std::vector<int> axes(tensor.shape.num_axes());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Distance in elements between neighbours along each axis.
inline std::vector<int64_t> MemoryStrides(const TensorDesc& tensor) {
  std::vector<int64_t> strides(tensor.shape.num_axes());
  int64_t stride = 1;
  for (const int axis : std::views::reverse(MemoryAxes(tensor))) {
    strides[axis] = stride;
    stride *= tensor.shape[axis];
  }
  return strides;
}

// (x) -> (y):  axis i of y is axis order[i] of x.
struct Permute {
  static constexpr std::string_view kName = "Permute";
  std::vector<int> order;

  Permute Inverse() const {
    Permute inverse{std::vector<int>(order.size())};
    for (size_t i = 0; i < order.size(); ++i) inverse.order[order[i]] = static_cast<int>(i);
    return inverse;
  }
  // If channels are last in memory, these two permutations move no data.
  bool puts_channels_last() const { return order == std::vector<int>{0, 2, 3, 1}; }
  bool puts_channels_second() const { return order == std::vector<int>{0, 3, 1, 2}; }
  LayoutRule layout_rule() const {
    if (puts_channels_last()) return {.inputs = {0}};
    if (puts_channels_second()) return {.outputs = {0}, .prefers_channels_last = true};
    return {};
  }
  Shape OutputShape(const Shape& x) const {
    std::vector<int64_t> dims;
    for (const int axis : order) dims.push_back(x[axis]);
    return Shape(std::move(dims));
  }
  std::string Attributes() const {
    std::string text = "order";
    for (const int axis : order) text += StrCat(" ", axis);
    return text;
  }
};

// (x) -> (y):  x repeated `tiles` times along `axis`.
struct Tile {
  static constexpr std::string_view kName = "Tile";
  int axis = 1;
  int64_t tiles = 1;
  std::string Attributes() const { return StrCat("axis ", axis, ", tiles ", tiles); }
};

// (dy) -> (dx):  the sum over the repetitions.
struct TileGrad {
  static constexpr std::string_view kName = "TileGrad";
  int axis = 1;
  int64_t tiles = 1;
};

// (x) -> (y):  the part of x that begins at offsets[i] along axis i and has y's shape.
struct Crop {
  static constexpr std::string_view kName = "Crop";
  std::vector<int64_t> offsets;
  std::string Attributes() const {
    std::string text = "offsets";
    for (const int64_t offset : offsets) text += StrCat(" ", offset);
    return text;
  }
};

// (dy) -> (dx):  dy at the offsets, zeros around it.
struct CropGrad {
  static constexpr std::string_view kName = "CropGrad";
  std::vector<int64_t> offsets;
};

// (table, index) -> (y):  y[i] = table[index[i]], rows being everything after axis 0. Throws
// InvalidArgument for an index outside the table.
struct Gather {
  static constexpr std::string_view kName = "Gather";
  static constexpr OperandSet kExactInputs = {1};
};

// (dy, index) -> (dtable):  dtable[index[i]] += dy[i]; other rows are 0.
struct GatherGrad {
  static constexpr std::string_view kName = "GatherGrad";
};

// (x, places, weights) -> (y):  the product with a sparse matrix along `axis`:
//   y[o] = sum over k of weights[o][k] * x[places[o][k]]
// places and weights are outputs x taps; a negative place ends a row's taps.
struct WeightedGather {
  static constexpr std::string_view kName = "WeightedGather";
  static constexpr OperandSet kExactInputs = {1, 2};
  int axis = 1;
  std::string Attributes() const { return StrCat("axis ", axis); }
  LayoutRule layout_rule() const { return kFollowFirstInput; }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const {
    return 2.0 * static_cast<double>(outputs[0].count()) * static_cast<double>(inputs[1].shape[1]);
  }
};

// (x, mask) -> (y):  copies each element of x to place h * W + w of its plane of y, which mask
// gives as in MaxPool; other elements of y are 0. If several elements have the same place, the last
// one counts; elements with a place below 0 are dropped. Throws InvalidArgument for a place beyond
// the plane.
struct Unpool {
  static constexpr std::string_view kName = "Unpool";
  static constexpr OperandSet kExactInputs = {1};
};

// (dy, mask) -> (dx):  dy at the element's place, 0 if it has no place.
struct UnpoolGrad {
  static constexpr std::string_view kName = "UnpoolGrad";
  static constexpr OperandSet kExactInputs = {1};
};

}  // namespace caffe::ops
