#include "caffe/ops/conv_statistics.hpp"

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/kernels/running_statistics.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using ops::ConvStatistics;

template <typename T>
void StatisticsOfChannel(const KernelContext& ctx, const ops::CoveredView& view, int64_t c) {
  const T* y = ctx.output(ConvStatistics::kY).as<const T>();
  const auto mean_of = [&](const auto& fn) {
    double sum = 0;
    for (int64_t o = 0; o < view.outer; ++o) {
      const int64_t row = (o * view.covered + c) * view.inner;
      for (int64_t i = row; i < row + view.inner; ++i) sum += fn(static_cast<double>(y[i]));
    }
    return sum / static_cast<double>(view.outer * view.inner);
  };
  const double mean = mean_of([](double value) { return value; });
  const double variance = mean_of([&](double value) { return (value - mean) * (value - mean); });
  SetElement(ctx.output(ConvStatistics::kMean), c, mean);
  SetElement(ctx.output(ConvStatistics::kVariance), c, variance);
}

// A reference for tests: plans for CPUs never contain this op.
KernelOrRefusal MakeConvStatistics(const ConvStatistics& op, const KernelRequest& request) {
  const Op plain(op.conv);
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCpu, plain.type());
  KernelOrRefusal conv = candidates.back().factory(
      {plain, request.inputs, request.outputs.first(1), request.device, request.settings});
  Kernel* const kernel = std::get_if<Kernel>(&conv);
  if (kernel == nullptr) return conv;
  kernel->run = [op, run = kernel->run](const KernelContext& ctx) {
    run(ctx);
    const TensorView& y = ctx.output(ConvStatistics::kY);
    const ops::CoveredView view(y, {1, 1});
    VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
      for (int64_t c = 0; c < view.covered; ++c) StatisticsOfChannel<T>(ctx, view, c);
    });
    UpdateRunningOf(op, ctx);
  };
  return conv;
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ConvStatistics, "conv-statistics-reference",
                              KernelRank::kReference, MakeConvStatistics);

}  // namespace
}  // namespace caffe::cpu
