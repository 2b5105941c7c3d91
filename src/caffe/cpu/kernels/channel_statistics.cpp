#include "caffe/cpu/kernels/element.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cpu {
namespace {

template <typename T>
void StatisticsOfChannel(const KernelContext& ctx, const ops::CoveredView& view, int64_t c) {
  using Statistics = ops::ChannelStatistics;
  const T* x = ctx.input(0).as<const T>();
  const auto mean_of = [&](const auto& fn) {
    double sum = 0;
    for (int64_t o = 0; o < view.outer; ++o) {
      const int64_t row = (o * view.covered + c) * view.inner;
      for (int64_t i = row; i < row + view.inner; ++i) sum += fn(static_cast<double>(x[i]));
    }
    return sum / static_cast<double>(view.outer * view.inner);
  };
  const double mean = mean_of([](double value) { return value; });
  const double variance = mean_of([&](double value) { return (value - mean) * (value - mean); });
  SetElement(ctx.output(Statistics::kMean), c, mean);
  SetElement(ctx.output(Statistics::kVariance), c, variance);
}

// A reference for tests: plans for CPUs never contain this op.
void ChannelStatistics(const ops::ChannelStatistics&, const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const ops::CoveredView view(x, {1, 1});
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    for (int64_t c = 0; c < view.covered; ++c) StatisticsOfChannel<T>(ctx, view, c);
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ChannelStatistics, ChannelStatistics);

}  // namespace
}  // namespace caffe::cpu
