#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/random_on_device.cuh"
#include "caffe/ops/norm.hpp"

namespace caffe::cuda {
namespace {

// Running statistics, whose first pass is told from the others on the device.
struct AverageStatistics {
  Numbers batch_mean, batch_variance, mean, variance, factor;
  double fraction, unbias;
  bool decaying_sums, copies_first;
  RandomOnDevice random;

  __device__ void operator()(int64_t c) const {
    double keep = fraction, take = 1;
    if (!decaying_sums) {
      keep = copies_first && random.is_first_pass() ? 0 : fraction;
      take = 1 - keep;
    }
    mean.Set(c, keep * mean.Get<double>(c) + take * batch_mean.Get<double>(c));
    variance.Set(c, keep * variance.Get<double>(c) + take * unbias * batch_variance.Get<double>(c));
    if (decaying_sums && c == 0) factor.Set(0, fraction * factor.Get<double>(0) + 1);
  }
};

void UpdateRunningStatistics(const ops::UpdateRunningStatistics& op, const KernelContext& ctx) {
  const double unbias =
      op.count > 1 ? static_cast<double>(op.count) / static_cast<double>(op.count - 1) : 1;
  ForEach(ctx, ctx.output(0).count(),
          AverageStatistics{InputNumbers(ctx, 0), InputNumbers(ctx, 1), OutputNumbers(ctx, 0),
                            OutputNumbers(ctx, 1), OutputNumbers(ctx, 2), op.fraction, unbias,
                            op.decaying_sums, op.copies_first, RandomOnDevice(ctx)});
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::UpdateRunningStatistics, UpdateRunningStatistics);

}  // namespace
}  // namespace caffe::cuda
