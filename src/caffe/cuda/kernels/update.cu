#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/update.hpp"

namespace caffe::cuda {
namespace {

// The scalars are read on the device, where a replayed graph finds those of its step.
template <typename T>
struct SgdElement {
  ops::SgdUpdate op;
  const double* scalars;
  const T* g;
  T *w, *h;

  __device__ void operator()(int64_t i) const {
    const T rate = static_cast<T>(scalars[0] * op.lr_mult), momentum = static_cast<T>(scalars[1]);
    const T decay = static_cast<T>(scalars[2] * op.decay_mult);
    const T weight = w[i];
    T gradient = static_cast<T>(scalars[3]) * g[i];
    if (op.regularization == ops::Regularization::kL2) gradient += decay * weight;
    if (op.regularization == ops::Regularization::kL1) {
      gradient += decay * (T(weight > 0) - T(weight < 0));
    }
    const T step = momentum * h[i] + rate * gradient;
    h[i] = step;
    w[i] = weight - step;
  }
};

void SgdUpdate(const ops::SgdUpdate& op, const KernelContext& ctx) {
  const TensorView &w = ctx.output(0), &h = ctx.output(1);
  VisitWide(w.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, w.count(),
            SgdElement<T>{op, ctx.input(1).as<const double>(), ctx.input(0).as<const T>(),
                          w.as<T>(), h.as<T>()});
  });
}

struct StoreTotal {
  double* to;
  bool adds;

  __device__ void operator()(int64_t, const Sums<1, double>& sums) const {
    *to = adds ? *to + sums.values[0] : sums.values[0];
  }
};

template <typename T>
struct AddProduct {
  const T *x, *y;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    sums.values[0] += static_cast<double>(Wide(x[i])) * static_cast<double>(Wide(y[i]));
  }
};

KernelOrRefusal MakeSumOfSquares(const ops::SumOfSquares&, const KernelRequest& request) {
  const Covered all(1, 1, request.inputs[0].count());
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    const T* x = ctx.input(0).as<const T>();
                    SumCovered<1, double>(
                        ctx, all, ctx.workspace, AddProduct<T>{x, x},
                        StoreTotal{ctx.output(0).as<double>(), ctx.accumulates(0)});
                  });
                },
                SumWorkspace<1, double>(all)};
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SgdUpdate, SgdUpdate);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SumOfSquares, "sum-of-squares",
                              KernelRank::kReference, MakeSumOfSquares);

}  // namespace
}  // namespace caffe::cuda
