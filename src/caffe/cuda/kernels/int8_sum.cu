// Sums of quantised values.
#include "caffe/cuda/entries.hpp"
#include "caffe/cuda/int8.cuh"
#include "caffe/ops/eltwise.hpp"

namespace caffe::cuda {
namespace {

// As many as fit into a launch's parameters.
constexpr size_t kMostOperands = 64;

template <typename T, int N>
struct SumNumbers {
  ScaledNumbers x[kMostOperands];
  int operands;
  Entries entries;
  float per_unit;
  T* y;

  __device__ void operator()(int64_t pack) const {
    float sums[N] = {};
    for (int k = 0; k < operands; ++k) x[k].AddTo(pack, sums);
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] = entries.Apply(sums[k]);
    StoreNumbers(sums, per_unit, y, pack);
  }
};

void Sum8Bit(const ops::EltwiseSum& op, const KernelContext& ctx) {
  const TensorView& y = ctx.output(0);
  VisitNumber(y.dtype, [&]<typename T>(TypeTag<T>) {
    VisitChannelPacks(y.count(), [&]<int N>(std::integral_constant<int, N>) {
      SumNumbers<T, N> body{{}, 0, Entries(op.epilogue), 1 / ops::ScaleOf(y), y.as<T>()};
      for (const TensorView& x : ctx.inputs) {
        const auto k = static_cast<size_t>(body.operands++);
        body.x[k] = ScaledNumbers(x, op.coefficients.empty() ? 1 : op.coefficients[k]);
      }
      ForEach(ctx, y.count() / N, body);
    });
  });
}

KernelOrRefusal MakeSum8Bit(const ops::EltwiseSum& op, const KernelRequest&) {
  return Kernel{"", [op](const KernelContext& ctx) { Sum8Bit(op, ctx); }};
}

std::string WhyNotSum(const Op&, std::span<const OperandDesc> inputs, const Device&) {
  if (inputs.size() <= kMostOperands) return "";
  return StrCat("it adds ", inputs.size(), " tensors, and the CUDA kernels at most ",
                kMostOperands);
}

KernelTraits SumTraits() {
  KernelTraits traits = ops::Int8Traits(EntriesFit);
  traits.why_not = WhyNotSum;
  return traits;
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::EltwiseSum, "eltwise-sum-int8",
                              KernelRank::kBest, MakeSum8Bit, SumTraits());

}  // namespace
}  // namespace caffe::cuda
