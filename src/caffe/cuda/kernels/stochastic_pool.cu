#include "caffe/cuda/launch.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/random_on_device.cuh"
#include "caffe/ops/pool.hpp"

namespace caffe::cuda {
namespace {

// Sizes of NCHW images and of their pooled results.
struct Planes {
  ops::PoolGeometry geometry;
  int64_t height, width, out_height, out_width;

  Planes(const ops::PoolGeometry& geometry, const Shape& x, const Shape& y)
      : geometry(geometry), height(x[2]), width(x[3]), out_height(y[2]), out_width(y[3]) {}

  struct Window {
    int64_t plane;  // offset of its first element
    ops::PoolWindow rows, columns;
  };
  // Window of output element i.
  __device__ Window At(int64_t i) const {
    int64_t oh, ow;
    const int64_t plane = Divide(Divide(i, out_width, &ow), out_height, &oh);
    return {plane * height * width, ops::WindowAt(geometry, 0, height, oh),
            ops::WindowAt(geometry, 1, width, ow)};
  }

  // Calls fn(index within the plane) for each element of a window until it returns false.
  template <typename Fn>
  __device__ void ForElements(const Window& window, Fn fn) const {
    for (int64_t h = window.rows.begin; h < window.rows.end; ++h) {
      for (int64_t w = window.columns.begin; w < window.columns.end; ++w) {
        if (!fn(h * width + w)) return;
      }
    }
  }

  // Sums are in double, as on the CPU: a draw must not depend on the device.
  template <typename T>
  __device__ double Sum(const Window& window, const T* x) const {
    double sum = 0;
    ForElements(window, [&](int64_t i) {
      sum += static_cast<double>(x[window.plane + i]);
      return true;
    });
    return sum;
  }
};

template <typename T>
struct DrawElement {
  Planes planes;
  RandomOnDevice random;
  uint64_t stream;
  const T* x;
  T* y;
  Numbers mask;

  __device__ void operator()(int64_t i) const {
    const Planes::Window window = planes.At(i);
    const T* from = x + window.plane;
    const uint32_t bits = random.Stream(stream).Bits(i, random.pass());
    const double threshold = static_cast<double>(ToUniform(bits)) * planes.Sum(window, x);
    double reached = 0;
    int64_t chosen = -1;
    planes.ForElements(window, [&](int64_t at) {
      reached += static_cast<double>(from[at]);
      chosen = at;
      return reached <= threshold;
    });
    y[i] = chosen < 0 ? T(0.0f) : from[chosen];
    if (mask.is_present()) mask.Set(i, static_cast<float>(chosen));
  }
};

void StochasticPool(const ops::StochasticPool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const Planes planes(op.geometry, x.shape, y.shape);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(),
            DrawElement<T>{planes, RandomOnDevice(ctx), op.stream, x.as<const T>(), y.as<T>(),
                           OutputNumbers(ctx, 1)});
  });
}

template <typename T>
struct ExpectElement {
  Planes planes;
  const T* x;
  T* y;

  __device__ void operator()(int64_t i) const {
    const Planes::Window window = planes.At(i);
    const double sum = planes.Sum(window, x);
    double squares = 0;
    planes.ForElements(window, [&](int64_t at) {
      const double value = static_cast<double>(x[window.plane + at]);
      squares += value * value;
      return true;
    });
    y[i] = T(sum > 0 ? squares / sum : 0.0);
  }
};

void StochasticPoolMean(const ops::StochasticPoolMean& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const Planes planes(op.geometry, x.shape, y.shape);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(), ExpectElement<T>{planes, x.as<const T>(), y.as<T>()});
  });
}

// Each input position sums over the windows that contain it.
template <typename T>
struct ExpectElementGradient {
  Planes planes;
  const T *x, *y, *dy;
  T* dx;

  __device__ void operator()(int64_t i) const {
    int64_t h, w;
    const int64_t plane = Divide(Divide(i, planes.width, &w), planes.height, &h);
    double gradient = 0;
    const int64_t first = plane * planes.out_height * planes.out_width;
    for (int64_t oh = FirstWindow(0, h); oh < planes.out_height && Begins(0, oh, h); ++oh) {
      for (int64_t ow = FirstWindow(1, w); ow < planes.out_width && Begins(1, ow, w); ++ow) {
        const int64_t at = first + oh * planes.out_width + ow;
        const double sum = planes.Sum(planes.At(at), x);
        if (!(sum > 0)) continue;
        gradient += static_cast<double>(dy[at]) *
                    (2 * static_cast<double>(x[i]) - static_cast<double>(y[at])) / sum;
      }
    }
    dx[i] = T(gradient);
  }

 private:
  // FirstWindow() is the first window of an axis that ends after position `at`; Begins() is true if
  // a window begins at or before it.
  __device__ int64_t FirstWindow(int axis, int64_t at) const {
    const int64_t past = at + planes.geometry.pad[axis] - planes.geometry.kernel[axis];
    return past < 0 ? 0 : Divide(past, planes.geometry.stride[axis]) + 1;
  }
  __device__ bool Begins(int axis, int64_t window, int64_t at) const {
    return window * planes.geometry.stride[axis] <= at + planes.geometry.pad[axis];
  }
};

void StochasticPoolMeanGrad(const ops::StochasticPoolMeanGrad& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.input(1), &dx = ctx.output(0);
  const Planes planes(op.geometry, x.shape, y.shape);
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, dx.count(),
            ExpectElementGradient<T>{planes, x.as<const T>(), y.as<const T>(),
                                     ctx.input(2).as<const T>(), dx.as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::StochasticPool, StochasticPool);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::StochasticPoolMean, StochasticPoolMean);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::StochasticPoolMeanGrad, StochasticPoolMeanGrad);

}  // namespace
}  // namespace caffe::cuda
