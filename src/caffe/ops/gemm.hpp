// Matrix products.
#pragma once

#include <string>

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

}  // namespace caffe::ops
