// Kernels that complement the vendor's libraries. Filters are KCRS in the net and KRSC in a
// convolution; gradients of biases are sums over pixels; and if cuDNN cannot add a bias and apply
// ReLU itself, a kernel does so afterwards.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// A matrix, or several stored one after the other.
struct Matrices {
  void* data = nullptr;
  DType dtype = DType::kFloat;
};

// to = or += the transposes of `count` matrices of rows x columns, with type conversion.
void TransposeMatrices(const KernelContext& ctx, const Matrices& from, int64_t count, int64_t rows,
                       int64_t columns, bool adds, const Matrices& to);

// A tensor of outer x channels x inner elements.
struct ChannelExtents {
  int64_t outer = 0, channels = 0, inner = 1;
};

// sums (channels) = or += the sum of all elements of each channel, always in the same order. The
// workspace must have SumChannelsWorkspace() bytes.
void SumChannels(const KernelContext& ctx, const Matrices& from, const ChannelExtents& extents,
                 bool adds, const Matrices& sums, void* workspace);
size_t SumChannelsWorkspace(const ChannelExtents& extents);

// y[i] += bias[i / inner % channels] if there is a bias; then negative values are multiplied by
// negative_slope.
struct BiasAndRelu {
  Matrices bias;  // null data: no bias
  int64_t channels = 1, inner = 1;
  double negative_slope = 1;  // 1: no ReLU
};
void AddBiasAndRelu(const KernelContext& ctx, const BiasAndRelu& what, int64_t count,
                    const Matrices& y);

}  // namespace caffe::cuda
