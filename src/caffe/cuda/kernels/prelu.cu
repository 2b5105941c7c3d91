#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/prelu.hpp"

namespace caffe::cuda {
namespace {

// to = from if x > 0, otherwise slope * from; in forward, from == x.
template <typename T>
struct SlopeBelowZero {
  const T *x, *from;
  Numbers slope;
  int64_t covered, inner;
  T* to;

  __device__ void operator()(int64_t i) const {
    using A = Accum<T>;
    const A value = Wide(from[i]);
    const int64_t c = Remainder(Divide(i, inner), covered);
    to[i] = T(Wide(x[i]) > A(0) ? value : slope.Get<A>(c) * value);
  }
};

void ApplySlope(const ops::BroadcastAxes& axes, const KernelContext& ctx, int from) {
  const ops::CoveredView view(ctx.input(0), axes);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(
        ctx, ctx.output(0).count(),
        SlopeBelowZero<T>{ctx.input(0).as<const T>(), ctx.input(from).as<const T>(),
                          InputNumbers(ctx, 1), view.covered, view.inner, ctx.output(0).as<T>()});
  });
}

void PRelu(const ops::PRelu& op, const KernelContext& ctx) {
  ApplySlope(op, ctx, 0);
}
void PReluGrad(const ops::PReluGrad& op, const KernelContext& ctx) {
  ApplySlope(op, ctx, 2);
}

template <typename T>
struct AddSlopeGradient {
  const T *x, *dy;

  __device__ void operator()(int64_t, int64_t i, Sums<1, Accum<T>>& sums) const {
    const Accum<T> value = Wide(x[i]);
    if (!(value > Accum<T>(0))) sums.values[0] += value * Wide(dy[i]);
  }
};

struct StoreSlopeGradient {
  Gradient to;

  template <typename A>
  __device__ void operator()(int64_t c, const Sums<1, A>& sums) const {
    to.Store(c, sums.values[0]);
  }
};

KernelOrRefusal MakePReluGradSlope(const ops::PReluGradSlope& op, const KernelRequest& request) {
  const Covered view{ops::CoveredView(request.inputs[0], op)};
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    return Kernel{"",
                  [view](const KernelContext& ctx) {
                    SumCovered<1, A>(
                        ctx, view, ctx.workspace,
                        AddSlopeGradient<T>{ctx.input(0).as<const T>(), ctx.input(1).as<const T>()},
                        StoreSlopeGradient{OutputGradient(ctx, 0)});
                  },
                  SumWorkspace<1, A>(view)};
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::PRelu, PRelu);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::PReluGrad, PReluGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::PReluGradSlope, "prelu-grad-slope",
                              KernelRank::kReference, MakePReluGradSlope);

}  // namespace
}  // namespace caffe::cuda
