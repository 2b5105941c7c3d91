// Sums over the rows of a matrix, as for bias gradients.
#pragma once

#include <algorithm>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace internal {

// Number of rows summed in float before they are added to the double sums.
inline constexpr int64_t kRowsOfSum = 32;

template <typename T>
CAFFE_CPU_CLONES void AddRows(const T* x, int64_t rows, int64_t stride, int64_t columns,
                              float* block, double* sums) {
  for (int64_t c = 0; c < columns; ++c) block[c] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) block[c] += static_cast<float>(x[r * stride + c]);
  }
  for (int64_t c = 0; c < columns; ++c) sums[c] += static_cast<double>(block[c]);
}

}  // namespace internal

// to[c] = or += the sum of column c of x (rows x columns). The result does not depend on the number
// of threads, because each thread sums all rows of some columns.
template <typename T>
void SumColumns(const T* x, int64_t rows, int64_t columns, bool accumulates, float* to) {
  constexpr int64_t kBlock = 64;
  ParallelFor((columns + kBlock - 1) / kBlock, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t c0 = block * kBlock, width = std::min(kBlock, columns - c0);
      float partial[kBlock];
      double sums[kBlock] = {};
      for (int64_t r = 0; r < rows; r += internal::kRowsOfSum) {
        internal::AddRows(x + r * columns + c0, std::min(internal::kRowsOfSum, rows - r), columns,
                          width, partial, sums);
      }
      for (int64_t c = 0; c < width; ++c) {
        const double before = accumulates ? static_cast<double>(to[c0 + c]) : 0.0;
        to[c0 + c] = static_cast<float>(before + sums[c]);
      }
    }
  });
}

}  // namespace caffe::cpu
