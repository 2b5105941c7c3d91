// Sums of quantized values.
#include <array>

#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/ops/eltwise.hpp"

namespace caffe::cpu {
namespace {

constexpr int64_t kSumBlock = 1024;

template <typename T>
CAFFE_CPU_CLONES void AddScaled(const T* x, float factor, float* sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += factor * static_cast<float>(x[i]);
}

template <typename T>
CAFFE_CPU_CLONES void StoreScaled(const float* sums, float factor, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = ToNumber<T>(sums[i] * factor);
}

void SumBlock(const ops::EltwiseSum& op, const KernelContext& ctx, int64_t first, int64_t count) {
  std::array<float, kSumBlock> sums = {};
  for (size_t k = 0; k < ctx.inputs.size(); ++k) {
    const TensorView& x = ctx.inputs[k];
    const float coefficient = op.coefficients.empty() ? 1 : op.coefficients[k];
    VisitNumber(x.dtype, [&]<typename T>(TypeTag<T>) {
      AddScaled(x.as<const T>() + first, coefficient * ScaleOf(x), sums.data(), count);
    });
  }
  for (const ops::Pointwise& entry : op.epilogue) {
    for (int64_t i = 0; i < count; ++i) sums[i] = ops::ApplyPointwise(entry, sums[i]);
  }
  const TensorView& y = ctx.output(0);
  VisitNumber(y.dtype, [&]<typename T>(TypeTag<T>) {
    StoreScaled(sums.data(), 1 / ScaleOf(y), y.as<T>() + first, count);
  });
}

KernelOrRefusal MakeSumNumbers(const ops::EltwiseSum& op, const KernelRequest&) {
  return Kernel{"", [op](const KernelContext& ctx) {
                  ParallelFor(ctx.output(0).count(), kPointwiseGrain,
                              [&](int64_t begin, int64_t end) {
                                for (int64_t at = begin; at < end; at += kSumBlock)
                                  SumBlock(op, ctx, at, std::min(kSumBlock, end - at));
                              });
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::EltwiseSum, "eltwise-sum-int8",
                              KernelRank::kBest, MakeSumNumbers, Int8Traits(FusesAny));

}  // namespace
}  // namespace caffe::cpu
