#include "caffe/ops/conv_grad_norm.hpp"

#include <cmath>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using ops::BatchNormGradOfSums;
using ops::ConvGradNorm;

// Calls fn with the offsets of a channel's elements.
template <typename Fn>
void ForChannel(const ops::CoveredView& view, int64_t c, const Fn& fn) {
  for (int64_t o = 0; o < view.outer; ++o) {
    const int64_t row = (o * view.covered + c) * view.inner;
    for (int64_t i = row; i < row + view.inner; ++i) fn(i);
  }
}

template <typename T>
void MaskAndSum(const ConvGradNorm& op, const KernelContext& ctx, const ops::CoveredView& view,
                int64_t c) {
  using Norm = ConvGradNorm;
  const T* x = ctx.input(Norm::kX).as<const T>();
  T* dz = ctx.output(Norm::kDz).as<T>();
  const double mean = ElementOf(ctx.input(Norm::kMean), c);
  const double inverse = 1 / std::sqrt(ElementOf(ctx.input(Norm::kVariance), c) + op.eps);
  const double factor = ElementOr(ctx, Norm::kGamma, c, 1) * inverse;
  const double beta = ElementOr(ctx, Norm::kBeta, c, 0);
  double sum = 0, dot = 0;
  ForChannel(view, c, [&](int64_t i) {
    const double deviation = static_cast<double>(x[i]) - mean;
    const bool passes = static_cast<double>(T(deviation * factor + beta)) > 0;
    const double gradient = static_cast<double>(dz[i]) * (passes ? 1 : 0);
    dz[i] = T(gradient);
    sum += gradient;
    dot += gradient * deviation * inverse;
  });
  SetElement(ctx.output(Norm::kSum), c, sum);
  SetElement(ctx.output(Norm::kDot), c, dot);
}

// References for tests: plans for CPUs never contain these ops.
KernelOrRefusal MakeConvGradNorm(const ConvGradNorm& op, const KernelRequest& request) {
  const Op plain(op.conv);
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCpu, plain.type());
  KernelOrRefusal conv = candidates.back().factory(
      {plain, request.inputs.first(2), request.outputs.first(1), request.device, request.settings});
  Kernel* const kernel = std::get_if<Kernel>(&conv);
  if (kernel == nullptr) return conv;
  kernel->run = [op, run = kernel->run](const KernelContext& ctx) {
    run(ctx);
    const TensorView& dz = ctx.output(ConvGradNorm::kDz);
    const ops::CoveredView view(dz, {1, 1});
    VisitFloat(dz.dtype, [&]<typename T>(TypeTag<T>) {
      for (int64_t c = 0; c < view.covered; ++c) MaskAndSum<T>(op, ctx, view, c);
    });
  };
  return conv;
}

template <typename T>
void GradientOfChannel(const BatchNormGradOfSums& op, const KernelContext& ctx,
                       const ops::CoveredView& view, int64_t c) {
  using Grad = BatchNormGradOfSums;
  const T *x = ctx.input(Grad::kX).as<const T>(), *dz = ctx.input(Grad::kDz).as<const T>();
  T* dx = ctx.output(Grad::kDx).as<T>();
  const double mean = ElementOf(ctx.input(Grad::kMean), c);
  const double inverse = 1 / std::sqrt(ElementOf(ctx.input(Grad::kVariance), c) + op.eps);
  const double factor = ElementOr(ctx, Grad::kGamma, c, 1) * inverse;
  const double sum = ElementOf(ctx.input(Grad::kSum), c), dot = ElementOf(ctx.input(Grad::kDot), c);
  const double count = static_cast<double>(view.outer * view.inner);
  ForChannel(view, c, [&](int64_t i) {
    const double normalised = (static_cast<double>(x[i]) - mean) * inverse;
    dx[i] = T(factor * (static_cast<double>(dz[i]) - (sum + normalised * dot) / count));
  });
}

void GradientOfSums(const BatchNormGradOfSums& op, const KernelContext& ctx) {
  using Grad = BatchNormGradOfSums;
  const TensorView& x = ctx.input(Grad::kX);
  const ops::CoveredView view(x, {1, 1});
  const auto add = [&](int output, int64_t c, double value) {
    if (!ctx.has_output(output)) return;
    const TensorView& sum = ctx.output(output);
    SetElement(sum, c, ctx.accumulates(output) ? ElementOf(sum, c) + value : value);
  };
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    for (int64_t c = 0; c < view.covered; ++c) {
      if (ctx.has_output(Grad::kDx)) GradientOfChannel<T>(op, ctx, view, c);
      add(Grad::kDgamma, c, ElementOf(ctx.input(Grad::kDot), c));
      add(Grad::kDbeta, c, ElementOf(ctx.input(Grad::kSum), c));
    }
  });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ConvGradNorm, "conv-grad-norm-reference",
                              KernelRank::kReference, MakeConvGradNorm);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, BatchNormGradOfSums, GradientOfSums);

}  // namespace
}  // namespace caffe::cpu
