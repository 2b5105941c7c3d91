// Batch normalization of channels-last images with given statistics.
#include "caffe/cpu/kernels/batch_norm_channels_last.hpp"

#include <cmath>

#include "caffe/ops/norm.hpp"

namespace caffe::cpu::channels_last {
namespace {

template <typename T>
void BatchNormInference(const ops::BatchNormInference& op, int threads, const KernelContext& ctx) {
  using Norm = ops::BatchNormInference;
  const TensorView& x = ctx.input(Norm::kX);
  const int64_t channels = x.shape[1];
  const NormWorkspace space(ctx.workspace, threads, channels);
  float *factor = space.coefficient(0), *shift = space.coefficient(1);
  const double count = ChannelOr(ctx, Norm::kFactor, 0, 1);
  const double norm = count == 0 ? 0.0 : 1.0 / count;
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = ctx.input(Norm::kMean).as<const float>()[c] * norm;
    const double variance = ctx.input(Norm::kVariance).as<const float>()[c] * norm;
    const double scale = ChannelOr(ctx, Norm::kGamma, c, 1) / std::sqrt(variance + op.eps);
    factor[c] = static_cast<float>(scale);
    shift[c] = static_cast<float>(ChannelOr(ctx, Norm::kBeta, c, 0) - mean * scale);
  }
  NormaliseAll<T>(ctx, op.epilogue, factor, shift);
}

constexpr auto kBatchNormInference = []<typename T>(TypeTag<T>, const auto& op, int threads,
                                                    const KernelContext& ctx) {
  BatchNormInference<T>(op, threads, ctx);
};

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchNormInference,
                              "batch-norm-inference-channels-last", KernelRank::kGood,
                              (MakeNorm<ops::BatchNormInference, kBatchNormInference>),
                              NormTraits());

}  // namespace
}  // namespace caffe::cpu::channels_last
