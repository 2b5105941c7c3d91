// Matrix products.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (a, b[, bias]) -> (c):  c = op(a) op(b) + bias, then the epilogue, with op(a) rows x inner and
// op(b) inner x columns. Operands are read as matrices of these sizes whatever their shapes; bias
// has `columns` elements and is added to each row. If a is quantized, b is float, as in Conv.
struct Gemm {
  static constexpr std::string_view kName = "Gemm";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  static constexpr bool kMakesFloat = true;
  enum Input { kA, kB, kBias };
  int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;
  Epilogue epilogue = {};

  std::string Attributes() const {
    return StrCat(rows, "x", inner, transpose_a ? "(T)" : "", " * ", inner, "x", columns,
                  transpose_b ? "(T)" : "", EpilogueText(epilogue));
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(inner);
  }
};

// (a, b) -> (c):  products of many pairs of matrices, of the same sizes as in Gemm.
//
// The pairs form a grid of extents `batch`. A step along its axis k moves by a_steps[k] matrices of
// a, b_steps[k] of b and c_steps[k] of c; with 0 it stays at the same matrix. A matrix of a or b
// that is used again is broadcast. Products with the same matrix of c are added up, in the order of
// the grid, the last axis fastest. c has a matrix for each place that the steps reach. If a is
// quantized, so is b, with a scale of its own, and no products are added up.
struct BatchedGemm {
  static constexpr std::string_view kName = "BatchedGemm";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  static constexpr bool kMakesFloat = true;
  enum Input { kA, kB };
  int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;
  std::vector<int64_t> batch, a_steps, b_steps, c_steps;

  int64_t items() const {
    int64_t items = 1;
    for (const int64_t extent : batch) items *= extent;
    return items;
  }
  std::string Attributes() const {
    const auto join = [](const std::vector<int64_t>& numbers) {
      std::string text;
      for (const int64_t number : numbers) text += StrCat(text.empty() ? "" : "x", number);
      return text;
    };
    std::string text = join(batch) + " of ";
    for (const auto& [name, steps] : {std::pair("a", &a_steps), {"b", &b_steps}, {"c", &c_steps}}) {
      if (std::ranges::count(*steps, 0) > 0) text += StrCat(name, " by ", join(*steps), ", ");
    }
    return StrCat(text, rows, "x", inner, transpose_a ? "(T)" : "", " * ", inner, "x", columns,
                  transpose_b ? "(T)" : "");
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return 2.0 * static_cast<double>(items()) * static_cast<double>(rows) *
           static_cast<double>(columns) * static_cast<double>(inner);
  }
};

// A pair of a batch: the indices of its matrices and of their product, and if an earlier pair's
// product is in the same matrix.
struct MatrixPair {
  int64_t a = 0, b = 0, c = 0;
  bool adds = false;
};

// The pair at a place of the grid of the axes [begin, end) of a batch; 0 along the other axes.
inline MatrixPair PairAt(const BatchedGemm& op, size_t begin, size_t end, int64_t place) {
  MatrixPair pair;
  for (size_t k = end; k-- > begin;) {
    const int64_t at = place % op.batch[k];
    place /= op.batch[k];
    pair.a += at * op.a_steps[k];
    pair.b += at * op.b_steps[k];
    pair.c += at * op.c_steps[k];
    pair.adds |= op.c_steps[k] == 0 && at > 0;
  }
  return pair;
}

// The matrix of `rows` x `columns` elements at an index of a tensor.
inline void* MatrixAt(const TensorView& all, int64_t index, int64_t rows, int64_t columns) {
  return static_cast<char*>(all.data) +
         index * rows * columns * static_cast<int64_t>(SizeOf(all.dtype));
}

// The number of places of that grid.
inline int64_t Places(const BatchedGemm& op, size_t begin, size_t end) {
  int64_t places = 1;
  for (size_t k = begin; k < end; ++k) places *= op.batch[k];
  return places;
}

// The axes of a batch from this one on have a product in a matrix of its own at each place.
inline size_t FirstFreeAxis(const BatchedGemm& op) {
  size_t axis = op.batch.size();
  while (axis > 0 && op.c_steps[axis - 1] != 0) --axis;
  return axis;
}

}  // namespace caffe::ops
