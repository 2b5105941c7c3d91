#include <cmath>

#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/loss.hpp"

namespace caffe::cuda {
namespace {

Rows RowsAlong(const Shape& shape, int axis) {
  const ops::ClassView view(shape, axis);
  return {view.positions(), view.classes, view.inner};
}

// y = exp(x - max) / sum, in the compute type of y. Exponentials are computed twice instead of
// being stored.
template <typename X, typename Y>
struct SoftmaxRow {
  Rows rows;
  const X* x;
  Y* y;

  __device__ Y At(int64_t i) const { return static_cast<Y>(x[i]); }

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const int64_t offset = rows.Offset(row);
    Y largest = At(offset);
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      largest = Largest{}(largest, At(offset + c * rows.step));
    }
    largest = group.Reduce(Largest{}, largest);
    Y sum = 0;
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      sum += std::exp(At(offset + c * rows.step) - largest);
    }
    sum = group.Reduce(Sum{}, sum);
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      const int64_t i = offset + c * rows.step;
      y[i] = std::exp(At(i) - largest) / sum;
    }
  }
};

void Softmax(const ops::Softmax& op, const KernelContext& ctx) {
  const Rows rows = RowsAlong(ctx.output(0).shape, op.axis);
  VisitFloat(ctx.input(0).dtype, [&]<typename X>(TypeTag<X>) {
    VisitWide(ctx.output(0).dtype, [&]<typename Y>(TypeTag<Y>) {
      ForRows(ctx, rows, SoftmaxRow<X, Y>{rows, ctx.input(0).as<const X>(), ctx.output(0).as<Y>()});
    });
  });
}

template <typename T>
struct SoftmaxGradRow {
  using A = Accum<T>;
  Rows rows;
  Numbers y, dy;
  T* dx;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const int64_t offset = rows.Offset(row);
    A dot = 0;
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      const int64_t i = offset + c * rows.step;
      dot += y.Get<A>(i) * dy.Get<A>(i);
    }
    dot = group.Reduce(Sum{}, dot);
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      const int64_t i = offset + c * rows.step;
      dx[i] = T(y.Get<A>(i) * (dy.Get<A>(i) - dot));
    }
  }
};

void SoftmaxGrad(const ops::SoftmaxGrad& op, const KernelContext& ctx) {
  const Rows rows = RowsAlong(ctx.output(0).shape, op.axis);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(
        ctx, rows,
        SoftmaxGradRow<T>{rows, InputNumbers(ctx, 0), InputNumbers(ctx, 1), ctx.output(0).as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Softmax, Softmax);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SoftmaxGrad, SoftmaxGrad);

}  // namespace
}  // namespace caffe::cuda
