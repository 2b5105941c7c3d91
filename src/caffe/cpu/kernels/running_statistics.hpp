// Updates running statistics from those of a batch, in a separate step or in the step that computes
// them.
#pragma once

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cpu {

// Updates the outputs first (mean), first + 1 (variance) and first + 2 (factor).
inline void UpdateRunning(const ops::UpdateRunningStatistics& op, const KernelContext& ctx,
                          const TensorView& batch_mean, const TensorView& batch_variance,
                          int first) {
  const TensorView &mean = ctx.output(first), &variance = ctx.output(first + 1);
  const double unbias =
      op.count > 1 ? static_cast<double>(op.count) / static_cast<double>(op.count - 1) : 1;
  double keep = op.fraction, take = 1;
  if (!op.decaying_sums) {
    keep = op.copies_first && ctx.random.IsFirst(ctx.random.pass) ? 0 : op.fraction;
    take = 1 - keep;
  }
  for (int64_t c = 0; c < mean.count(); ++c) {
    SetElement(mean, c, keep * ElementOf(mean, c) + take * ElementOf(batch_mean, c));
    SetElement(variance, c,
               keep * ElementOf(variance, c) + take * unbias * ElementOf(batch_variance, c));
  }
  if (!op.decaying_sums) return;
  const TensorView& factor = ctx.output(first + 2);
  SetElement(factor, 0, op.fraction * ElementOf(factor, 0) + 1);
}

// For BatchNorm or ConvStatistics, which have the same output indexes; does nothing if the node has
// no running statistics.
template <typename Op>
void UpdateRunningOf(const Op& op, const KernelContext& ctx) {
  if (!op.running || !ctx.has_output(Op::kRunning)) return;
  UpdateRunning(*op.running, ctx, ctx.output(Op::kMean), ctx.output(Op::kVariance), Op::kRunning);
}

}  // namespace caffe::cpu
