// Updates running statistics from those of a batch, in a step of their own or in the step that
// computes the batch statistics.
#pragma once

#include <optional>

#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/random_on_device.cuh"
#include "caffe/ops/norm.hpp"

namespace caffe::cuda {

// Running statistics; the device itself recognises the first pass.
class RunningStatistics {
 public:
  // Updates the outputs first (mean), first + 1 (variance) and first + 2 (factor).
  RunningStatistics(const ops::UpdateRunningStatistics& op, const KernelContext& ctx,
                    const Numbers& batch_mean, const Numbers& batch_variance, int first)
      : batch_mean_(batch_mean),
        batch_variance_(batch_variance),
        mean_(OutputNumbers(ctx, first)),
        variance_(OutputNumbers(ctx, first + 1)),
        factor_(OutputNumbers(ctx, first + 2)),
        fraction_(op.fraction),
        unbias_(op.count > 1 ? static_cast<double>(op.count) / static_cast<double>(op.count - 1)
                             : 1),
        decaying_sums_(op.decaying_sums),
        copies_first_(op.copies_first),
        random_(ctx) {}
  // For ops::BatchNorm or ConvStatistics, whose outputs have the same indices; updates nothing if
  // the node has no running statistics.
  template <typename Op>
  static RunningStatistics Of(const Op& op, const KernelContext& ctx) {
    return {op.running.value_or(ops::UpdateRunningStatistics()), ctx, OutputNumbers(ctx, Op::kMean),
            OutputNumbers(ctx, Op::kVariance), Op::kRunning};
  }

  // Updates channel c; its batch statistics must be visible to the calling thread.
  __device__ void Update(int64_t c) const {
    if (!mean_.is_present()) return;
    double keep = fraction_, take = 1;
    if (!decaying_sums_) {
      keep = copies_first_ && random_.is_first_pass() ? 0 : fraction_;
      take = 1 - keep;
    }
    mean_.Set(c, keep * mean_.Get<double>(c) + take * batch_mean_.Get<double>(c));
    variance_.Set(
        c, keep * variance_.Get<double>(c) + take * unbias_ * batch_variance_.Get<double>(c));
    if (decaying_sums_ && c == 0) factor_.Set(0, fraction_ * factor_.Get<double>(0) + 1);
  }

 private:
  Numbers batch_mean_, batch_variance_, mean_, variance_, factor_;
  double fraction_, unbias_;
  bool decaying_sums_, copies_first_;
  RandomOnDevice random_;
};

}  // namespace caffe::cuda
