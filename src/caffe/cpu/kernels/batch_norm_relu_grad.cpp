#include "caffe/ops/batch_norm_relu_grad.hpp"

#include <cmath>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using ReluNormGrad = ops::BatchNormReluGrad;

// Statistics and parameters of one channel.
struct ReluNormChannel {
  double mean, inverse, gamma, beta;

  ReluNormChannel(const KernelContext& ctx, int64_t c, double eps)
      : mean(ElementOf(ctx.input(ReluNormGrad::kMean), c)),
        inverse(1 / std::sqrt(ElementOf(ctx.input(ReluNormGrad::kVariance), c) + eps)),
        gamma(ElementOr(ctx, ReluNormGrad::kGamma, c, 1)),
        beta(ElementOr(ctx, ReluNormGrad::kBeta, c, 0)) {}
  double Normalised(double x) const { return (x - mean) * inverse; }
};

void AddTo(const KernelContext& ctx, int output, int64_t c, double value) {
  if (!ctx.has_output(output)) return;
  const TensorView& sum = ctx.output(output);
  SetElement(sum, c, ctx.accumulates(output) ? ElementOf(sum, c) + value : value);
}

template <typename T>
void ReluNormGradientOfChannel(const KernelContext& ctx, const ops::CoveredView& view, int64_t c,
                               double eps) {
  const T* x = ctx.input(ReluNormGrad::kX).as<const T>();
  const T* dy = ctx.input(ReluNormGrad::kDy).as<const T>();
  const ReluNormChannel channel(ctx, c, eps);
  const auto for_each = [&](const auto& fn) {
    for (int64_t o = 0; o < view.outer; ++o) {
      const int64_t row = (o * view.covered + c) * view.inner;
      for (int64_t i = row; i < row + view.inner; ++i)
        fn(i, channel.Normalised(static_cast<double>(x[i])));
    }
  };
  const auto gradient = [&](int64_t i, double normalised) {
    const bool passes = static_cast<double>(T(channel.gamma * normalised + channel.beta)) > 0;
    return static_cast<double>(dy[i]) * (passes ? 1 : 0);
  };
  double sum = 0, dot = 0;
  for_each([&](int64_t i, double normalised) {
    sum += gradient(i, normalised);
    dot += gradient(i, normalised) * normalised;
  });
  AddTo(ctx, ReluNormGrad::kDgamma, c, dot);
  AddTo(ctx, ReluNormGrad::kDbeta, c, sum);
  if (!ctx.has_output(ReluNormGrad::kDx)) return;
  T* dx = ctx.output(ReluNormGrad::kDx).as<T>();
  const auto count = static_cast<double>(view.outer * view.inner);
  for_each([&](int64_t i, double normalised) {
    dx[i] = T(channel.gamma * channel.inverse *
              (gradient(i, normalised) - (sum + normalised * dot) / count));
  });
}

// A reference for tests: plans for CPUs never contain this op.
void BatchNormReluGrad(const ReluNormGrad& op, const KernelContext& ctx) {
  const ops::CoveredView view(ctx.input(ReluNormGrad::kX), {1, 1});
  VisitFloat(ctx.input(ReluNormGrad::kX).dtype, [&]<typename T>(TypeTag<T>) {
    for (int64_t c = 0; c < view.covered; ++c) ReluNormGradientOfChannel<T>(ctx, view, c, op.eps);
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ReluNormGrad, BatchNormReluGrad);

}  // namespace
}  // namespace caffe::cpu
