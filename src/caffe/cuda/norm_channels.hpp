// Numbers of each channel, between what cuDNN's normalisations have and what ours have. Each
// function is one launch.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// inverse[c] = 1 / sqrt(variance[c] + eps).
void InverseDeviations(const KernelContext& ctx, const TensorView& variance, double eps,
                       float* inverse);

}  // namespace caffe::cuda
