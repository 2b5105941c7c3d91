// Ops that reduce the innermost axes to one number, or find the largest elements of an axis.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

enum class Reduction { kSum, kAbsSum, kSumOfSquares, kMean };

// (x) -> (y):  y[i] = coefficient * reduction of row i; rows have count(x) / count(y) elements.
struct Reduce {
  static constexpr std::string_view kName = "Reduce";
  Reduction reduction = Reduction::kSum;
  double coefficient = 1;
  std::string Attributes() const { return StrCat("coefficient ", coefficient); }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc>) const {
    return static_cast<double>(inputs[0].count());
  }
};

// (x, dy) -> (dx):  coefficient * dy[i] times 1, sign(x), 2 x or 1 / length of the row.
struct ReduceGrad {
  static constexpr std::string_view kName = "ReduceGrad";
  Reduction reduction = Reduction::kSum;
  double coefficient = 1;
};

// (x) -> (indices[, values]):  the top_k largest elements along `axis` and their indices, largest
// first. Of equal values the higher index comes first; NaN comes after all numbers. In both outputs
// the axis has extent top_k.
struct ArgMax {
  static constexpr std::string_view kName = "ArgMax";
  int axis = 1;
  int64_t top_k = 1;
  std::string Attributes() const { return StrCat("axis ", axis, ", top_k ", top_k); }
};

}  // namespace caffe::ops
