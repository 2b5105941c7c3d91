// Converts per-channel numbers between cuDNN's normalisations and ours. Each function is one
// launch.
#pragma once

#include "caffe/ops/kernel.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cuda {

// inverse[c] = 1 / sqrt(variance[c] + eps).
void InverseDeviations(const KernelContext& ctx, const TensorView& variance, double eps,
                       float* inverse);

// For BatchNorm: computes its variances from inverse deviations, and the running statistics from
// those of the batch, whose means are already stored.
void StoreVariances(const ops::BatchNorm& op, const KernelContext& ctx, const float* inverse);

// For BatchNormGrad: stores or accumulates the gradients of scale and shift.
void StoreParameterGradients(const KernelContext& ctx, const float* dgamma, const float* dbeta);

}  // namespace caffe::cuda
