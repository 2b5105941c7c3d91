#include <cmath>

#include "caffe/cuda/map.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/fold.hpp"

namespace caffe::cuda {
namespace {

using Fold = ops::FoldChannels;

// Folded scale and bias of one channel.
struct OneChannel {
  Numbers bias, mean, variance, factor, gamma, beta;
  double eps;

  __device__ double Share() const {
    const double value = factor.GetOr<double>(0, 1);
    return value == 0 ? 0 : 1 / value;
  }
  __device__ double Scale(int64_t c) const {
    const double scale = gamma.GetOr<double>(c, 1);
    if (!variance.is_present()) return scale;
    return scale / sqrt(variance.Get<double>(c) * Share() + eps);
  }
  __device__ double Bias(int64_t c) const {
    const double shift = bias.GetOr<double>(c, 0) - mean.GetOr<double>(c, 0) * Share();
    return shift * Scale(c) + beta.GetOr<double>(c, 0);
  }
};

struct FoldWeights {
  OneChannel channel;
  Numbers w, folded;
  int64_t row;

  __device__ void operator()(int64_t i) const {
    folded.Set(i, w.Get<double>(i) * channel.Scale(i / row));
  }
};

struct FoldBias {
  OneChannel channel;
  Numbers folded;

  __device__ void operator()(int64_t c) const { folded.Set(c, channel.Bias(c)); }
};

void FoldChannels(const Fold& op, const KernelContext& ctx) {
  const OneChannel channel{InputNumbers(ctx, Fold::kBias),
                           InputNumbers(ctx, Fold::kMean),
                           InputNumbers(ctx, Fold::kVariance),
                           InputNumbers(ctx, Fold::kFactor),
                           InputNumbers(ctx, Fold::kGamma),
                           InputNumbers(ctx, Fold::kBeta),
                           op.eps};
  const int64_t count = ctx.input(Fold::kW).count();
  const int64_t channels = ctx.output(Fold::kFoldedBias).count();
  ForEach(ctx, count,
          FoldWeights{channel, InputNumbers(ctx, Fold::kW), OutputNumbers(ctx, Fold::kFoldedW),
                      count / channels});
  ForEach(ctx, channels, FoldBias{channel, OutputNumbers(ctx, Fold::kFoldedBias)});
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::FoldChannels, FoldChannels);

}  // namespace
}  // namespace caffe::cuda
