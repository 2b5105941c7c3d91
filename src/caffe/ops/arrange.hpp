// Ops that put elements in other places: permutations, repetitions, crops, gathered rows.
#pragma once

#include <string>
#include <vector>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (x) -> (y):  axis i of y is axis order[i] of x.
struct Permute {
  static constexpr std::string_view kName = "Permute";
  std::vector<int> order;
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

// (dy, index) -> (dtable):  rows of dy added where they came from; other rows are 0.
struct GatherGrad {
  static constexpr std::string_view kName = "GatherGrad";
};

}  // namespace caffe::ops
