// Numbers of each channel, between what cuDNN's normalisations have and what ours have. Each
// function is one launch.
#pragma once

#include "caffe/ops/kernel.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cuda {

// inverse[c] = 1 / sqrt(variance[c] + eps).
void InverseDeviations(const KernelContext& ctx, const TensorView& variance, double eps,
                       float* inverse);

// Of BatchNorm: its variances from inverse deviations, and the running statistics after those of
// the batch, whose means are there.
void StoreVariances(const ops::BatchNorm& op, const KernelContext& ctx, const float* inverse);

// Of BatchNormGrad: the gradients of scale and shift, which may be added to what is there.
void StoreParameterGradients(const KernelContext& ctx, const float* dgamma, const float* dbeta);

}  // namespace caffe::cuda
