#include "caffe/ops/relu_grad_sum.hpp"

#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Computes dx of a channel, and returns its sum in double.
template <typename T>
double GradientOfChannel(const ops::ReluGrad& gradient, const ops::CoveredView& view, int64_t c,
                         const T* s, const T* dy, T* dx) {
  double sum = 0;
  for (int64_t o = 0; o < view.outer; ++o) {
    const int64_t row = (o * view.covered + c) * view.inner;
    for (int64_t i = row; i < row + view.inner; ++i) {
      const auto value = gradient.Apply(static_cast<Accum<T>>(s[i]), static_cast<Accum<T>>(dy[i]));
      dx[i] = T(value);
      sum += static_cast<double>(value);
    }
  }
  return sum;
}

// A reference for tests: plans for CPUs never contain this op, because oneDNN computes the bias
// gradient together with that of the weights.
void ReluGradSum(const ops::ReluGradSum& op, const KernelContext& ctx) {
  using Sum = ops::ReluGradSum;
  const ops::CoveredView view(ctx.input(0), {1, 1});
  const TensorView& sums = ctx.output(Sum::kSum);
  VisitFloat(ctx.output(Sum::kDx).dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(sums.dtype, [&]<typename S>(TypeTag<S>) {
      for (int64_t c = 0; c < view.covered; ++c) {
        const double sum =
            GradientOfChannel<T>(op.gradient(), view, c, ctx.input(0).as<const T>(),
                                 ctx.input(1).as<const T>(), ctx.output(Sum::kDx).as<T>());
        S& out = sums.as<S>()[c];
        out = S(ctx.accumulates(Sum::kSum) ? sum + static_cast<double>(out) : sum);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ReluGradSum, ReluGradSum);

}  // namespace
}  // namespace caffe::cpu
