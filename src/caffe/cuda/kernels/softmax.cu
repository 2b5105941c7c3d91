#include <cmath>

#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/ops/loss.hpp"

namespace caffe::cuda {
namespace {

Rows RowsAlong(const Shape& shape, int axis) {
  const ops::ClassView view(shape, axis);
  return {view.positions(), view.classes, view.inner};
}

// y = exp(x - max) / sum. Exponentials are computed twice rather than stored between.
template <typename T>
struct SoftmaxRow {
  Rows rows;
  const T* x;
  T* y;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const int64_t offset = rows.Offset(row);
    T largest = x[offset];
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      largest = Largest{}(largest, x[offset + c * rows.step]);
    }
    largest = group.Reduce(Largest{}, largest);
    T sum = 0;
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      sum += std::exp(x[offset + c * rows.step] - largest);
    }
    sum = group.Reduce(Sum{}, sum);
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      const int64_t i = offset + c * rows.step;
      y[i] = std::exp(x[i] - largest) / sum;
    }
  }
};

void Softmax(const ops::Softmax& op, const KernelContext& ctx) {
  const Rows rows = RowsAlong(ctx.output(0).shape, op.axis);
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows, SoftmaxRow<T>{rows, ctx.input(0).as<const T>(), ctx.output(0).as<T>()});
  });
}

template <typename T>
struct SoftmaxGradRow {
  Rows rows;
  const T *y, *dy;
  T* dx;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const int64_t offset = rows.Offset(row);
    T dot = 0;
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      dot += y[offset + c * rows.step] * dy[offset + c * rows.step];
    }
    dot = group.Reduce(Sum{}, dot);
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      const int64_t i = offset + c * rows.step;
      dx[i] = y[i] * (dy[i] - dot);
    }
  }
};

void SoftmaxGrad(const ops::SoftmaxGrad& op, const KernelContext& ctx) {
  const Rows rows = RowsAlong(ctx.output(0).shape, op.axis);
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows,
            SoftmaxGradRow<T>{rows, ctx.input(0).as<const T>(), ctx.input(1).as<const T>(),
                              ctx.output(0).as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Softmax, Softmax);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SoftmaxGrad, SoftmaxGrad);

}  // namespace
}  // namespace caffe::cuda
