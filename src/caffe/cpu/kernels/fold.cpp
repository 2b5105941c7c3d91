#include "caffe/ops/fold.hpp"

#include <cmath>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Element c of an operand of either type; `otherwise` if the operand is absent.
double NumberOr(const KernelContext& ctx, int operand, int64_t c, double otherwise) {
  return ctx.has_input(operand) ? ElementOf(ctx.input(operand), c) : otherwise;
}

void FoldChannels(const ops::FoldChannels& op, const KernelContext& ctx) {
  using Fold = ops::FoldChannels;
  const double factor = NumberOr(ctx, Fold::kFactor, 0, 1);
  const double share = factor == 0 ? 0 : 1 / factor;
  const bool has_statistics = ctx.has_input(Fold::kVariance);
  VisitFloat(ctx.input(Fold::kW).dtype, [&]<typename T>(TypeTag<T>) {
    const T* w = ctx.input(Fold::kW).as<const T>();
    T *folded = ctx.output(Fold::kFoldedW).as<T>(), *bias = ctx.output(Fold::kFoldedBias).as<T>();
    const int64_t channels = ctx.output(Fold::kFoldedBias).count();
    const int64_t row = ctx.input(Fold::kW).count() / channels;
    ParallelFor(channels, kPointwiseGrain / row + 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double scale = NumberOr(ctx, Fold::kGamma, c, 1);
        if (has_statistics)
          scale /= std::sqrt(NumberOr(ctx, Fold::kVariance, c, 0) * share + op.eps);
        const double shift =
            NumberOr(ctx, Fold::kBias, c, 0) - NumberOr(ctx, Fold::kMean, c, 0) * share;
        bias[c] = T(static_cast<Accum<T>>(shift * scale + NumberOr(ctx, Fold::kBeta, c, 0)));
        const auto s = static_cast<Accum<T>>(scale);
        for (int64_t i = c * row; i < (c + 1) * row; ++i)
          folded[i] = T(static_cast<Accum<T>>(w[i]) * s);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::FoldChannels, FoldChannels);

}  // namespace
}  // namespace caffe::cpu
