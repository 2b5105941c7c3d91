#include "caffe/ops/prelu.hpp"

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Calls fn(i, slope) for each element; slope has the compute type of T.
template <typename T, typename Fn>
void ForElements(const TensorView& slope, const ops::CoveredView& view, const Fn& fn) {
  ParallelFor(view.outer * view.covered,
              std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(view.inner, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const auto s = static_cast<Accum<T>>(ElementOf(slope, row % view.covered));
                  for (int64_t i = row * view.inner; i < (row + 1) * view.inner; ++i) fn(i, s);
                }
              });
}

void PRelu(const ops::PRelu& op, const KernelContext& ctx) {
  const ops::CoveredView view(ctx.input(0), op);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const T* x = ctx.input(0).as<const T>();
    T* y = ctx.output(0).as<T>();
    ForElements<T>(ctx.input(1), view, [&](int64_t i, A slope) {
      const A value = static_cast<A>(x[i]);
      y[i] = T(value > 0 ? value : slope * value);
    });
  });
}

void PReluGrad(const ops::PReluGrad& op, const KernelContext& ctx) {
  const ops::CoveredView view(ctx.input(0), op);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const T* x = ctx.input(0).as<const T>();
    const T* dy = ctx.input(2).as<const T>();
    T* dx = ctx.output(0).as<T>();
    ForElements<T>(ctx.input(1), view, [&](int64_t i, A slope) {
      const A gradient = static_cast<A>(dy[i]);
      dx[i] = T(static_cast<A>(x[i]) > 0 ? gradient : slope * gradient);
    });
  });
}

void PReluGradSlope(const ops::PReluGradSlope& op, const KernelContext& ctx) {
  const ops::CoveredView view(ctx.input(0), op);
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    const T* dy = ctx.input(1).as<const T>();
    ParallelFor(view.covered, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double sum = 0;
        for (int64_t o = 0; o < view.outer; ++o) {
          const int64_t row = (o * view.covered + c) * view.inner;
          for (int64_t i = row; i < row + view.inner; ++i) {
            const double value = static_cast<double>(x[i]);
            if (!(value > 0)) sum += value * static_cast<double>(dy[i]);
          }
        }
        VisitFloat(ctx.output(0).dtype, [&]<typename S>(TypeTag<S>) {
          S& slope = ctx.output(0).as<S>()[c];
          slope = S(ctx.accumulates(0) ? sum + static_cast<double>(slope) : sum);
        });
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::PRelu, PRelu);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::PReluGrad, PReluGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::PReluGradSlope, PReluGradSlope);

}  // namespace
}  // namespace caffe::cpu
