#include "caffe/cuda/kernels/windows.cuh"
#include "caffe/ops/im2col.hpp"

namespace caffe::cuda {
namespace {

template <typename T>
struct GatherColumns {
  Windows windows;
  const T* x;
  T* columns;

  __device__ void operator()(int64_t i) const {
    int64_t p, tap;
    const int64_t plane = Divide(Divide(i, windows.out_pixels, &p), windows.taps, &tap);
    const int64_t position = windows.Input(p, tap);
    columns[i] = position < 0 ? T(0.0f) : x[plane * windows.in_pixels + position];
  }
};

void Im2col(const ops::Im2col& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const Windows windows(op.geometry, x.shape, y.shape);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(), GatherColumns<T>{windows, x.as<const T>(), y.as<T>()});
  });
}

// Each element of the image sums over the windows that contain it.
template <typename T>
struct GatherImage {
  Windows windows;
  const T* columns;
  T* x;

  __device__ void operator()(int64_t i) const {
    int64_t position;
    const int64_t plane = Divide(i, windows.in_pixels, &position);
    Accum<T> sum = 0;
    for (int64_t tap = 0; tap < windows.taps; ++tap) {
      const int64_t p = windows.Output(position, tap);
      if (p >= 0) sum += Wide(columns[(plane * windows.taps + tap) * windows.out_pixels + p]);
    }
    x[i] = T(sum);
  }
};

void Col2im(const ops::Col2im& op, const KernelContext& ctx) {
  const TensorView &columns = ctx.input(0), &x = ctx.output(0);
  const Windows windows(op.geometry, x.shape, columns.shape);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, x.count(), GatherImage<T>{windows, columns.as<const T>(), x.as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Im2col, Im2col);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Col2im, Col2im);

}  // namespace
}  // namespace caffe::cuda
