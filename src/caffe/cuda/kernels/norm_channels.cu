#include <cmath>

#include "caffe/cuda/kernels/running_statistics.cuh"
#include "caffe/cuda/norm_channels.hpp"
#include "caffe/cuda/numbers.cuh"

namespace caffe::cuda {
namespace {

struct InverseDeviation {
  Numbers variance;
  double eps;
  float* inverse;

  __device__ void operator()(int64_t c) const {
    inverse[c] = static_cast<float>(1 / std::sqrt(variance.Get<double>(c) + eps));
  }
};

struct VarianceOfInverse {
  const float* inverse;
  double eps;
  Numbers variance;
  RunningStatistics running;

  __device__ void operator()(int64_t c) const {
    const double square = 1 / (static_cast<double>(inverse[c]) * static_cast<double>(inverse[c]));
    const double value = square - eps;
    variance.Set(c, value < 0 ? 0.0 : value);  // NaN stays NaN
    running.Update(c);
  }
};

struct ParameterGradients {
  const float *dgamma, *dbeta;
  Gradient to_gamma, to_beta;

  __device__ void operator()(int64_t c) const {
    to_gamma.Store(c, dgamma[c]);
    to_beta.Store(c, dbeta[c]);
  }
};

}  // namespace

void StoreVariances(const ops::BatchNorm& op, const KernelContext& ctx, const float* inverse) {
  using Norm = ops::BatchNorm;
  ForEach(ctx, ctx.output(Norm::kVariance).count(),
          VarianceOfInverse{inverse, op.eps, OutputNumbers(ctx, Norm::kVariance),
                            RunningStatistics::Of(op, ctx)});
}

void StoreParameterGradients(const KernelContext& ctx, const float* dgamma, const float* dbeta) {
  using Grad = ops::BatchNormGrad;
  if (!ctx.has_output(Grad::kDgamma) && !ctx.has_output(Grad::kDbeta)) return;
  ForEach(ctx, ctx.input(Grad::kMean).count(),
          ParameterGradients{dgamma, dbeta, OutputGradient(ctx, Grad::kDgamma),
                             OutputGradient(ctx, Grad::kDbeta)});
}

void InverseDeviations(const KernelContext& ctx, const TensorView& variance, double eps,
                       float* inverse) {
  ForEach(ctx, variance.count(), InverseDeviation{{variance.data, variance.dtype}, eps, inverse});
}

}  // namespace caffe::cuda
