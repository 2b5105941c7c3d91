#include "caffe/cuda/kernels/running_statistics.cuh"

namespace caffe::cuda {
namespace {

struct UpdateChannel {
  RunningStatistics running;

  __device__ void operator()(int64_t c) const { running.Update(c); }
};

void UpdateRunningStatistics(const ops::UpdateRunningStatistics& op, const KernelContext& ctx) {
  ForEach(ctx, ctx.output(0).count(),
          UpdateChannel{{op, ctx, InputNumbers(ctx, 0), InputNumbers(ctx, 1), 0}});
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::UpdateRunningStatistics, UpdateRunningStatistics);

}  // namespace
}  // namespace caffe::cuda
