// What the vendor's libraries need around them. Filters are plain in the net and have their
// channels last in a convolution; gradients of biases are sums over pixels; and where cuDNN cannot
// add a bias and apply ReLU itself, that comes after it.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// A matrix, or several in a row.
struct Matrices {
  void* data = nullptr;
  DType dtype = DType::kFloat;
};

// to = or += the transposes of `count` matrices of rows x columns, converted.
void TransposeMatrices(const KernelContext& ctx, const Matrices& from, int64_t count, int64_t rows,
                       int64_t columns, bool adds, const Matrices& to);

// sums (columns) = or += the sum of a matrix of rows x columns over its rows, always in the same
// order. The workspace has SumRowsWorkspace() bytes.
void SumRows(const KernelContext& ctx, const Matrices& from, int64_t rows, int64_t columns,
             bool adds, const Matrices& sums, void* workspace);
size_t SumRowsWorkspace(int64_t rows, int64_t columns);

// y[i] += bias[i / inner % channels] where there is a bias; then negative ones times
// negative_slope.
struct BiasAndRelu {
  Matrices bias;  // without data: none
  int64_t channels = 1, inner = 1;
  double negative_slope = 1;  // 1: no ReLU
};
void AddBiasAndRelu(const KernelContext& ctx, const BiasAndRelu& what, int64_t count,
                    const Matrices& y);

}  // namespace caffe::cuda
