// Local response normalisation within a channel.
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/power.cuh"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::cuda {
namespace {

// Windows over a plane, with AVE pooling's divisor.
struct PlaneWindow {
  ops::PoolGeometry geometry;
  int64_t channels, height, width;
  bool plain;

  PlaneWindow(const TensorDesc& x, int64_t size)
      : geometry{.kernel = {size, size}, .stride = {1, 1}, .pad = {(size - 1) / 2, (size - 1) / 2}},
        channels(x.shape[1]),
        height(x.shape[2]),
        width(x.shape[3]),
        plain(x.layout == Layout::kPlain) {}

  // Rows and columns of the window around an element, and the offset of its plane.
  struct Part {
    int64_t begin, row_step, step;
    ops::PoolWindow rows, columns;
    __device__ int64_t At(int64_t h, int64_t w) const { return begin + h * row_step + w * step; }
  };
  __device__ Part Around(int64_t i) const {
    int64_t c = 0, h, w;
    const int64_t step = plain ? 1 : channels;
    const int64_t pixel = plain ? i : Divide(i, channels, &c);
    const int64_t plane = Divide(Divide(pixel, width, &w), height, &h);
    return {plane * height * width * step + c, width * step, step,
            ops::WindowAt(geometry, 0, height, h), ops::WindowAt(geometry, 1, width, w)};
  }
  __device__ int64_t SizeAt(int64_t h, int64_t w) const {
    return ops::WindowAt(geometry, 0, height, h).size * ops::WindowAt(geometry, 1, width, w).size;
  }
};

template <typename T>
struct LrnWithinForward {
  using A = Accum<T>;
  PlaneWindow window;
  A alpha, beta;
  const T* x;
  T* y;
  Numbers scales;

  __device__ void operator()(int64_t i) const {
    const auto part = window.Around(i);
    A squares = 0;
    for (int64_t h = part.rows.begin; h < part.rows.end; ++h) {
      for (int64_t w = part.columns.begin; w < part.columns.end; ++w) {
        const A value = Wide(x[part.At(h, w)]);
        squares += value * value;
      }
    }
    const A scale = A(1) + alpha * squares / static_cast<A>(part.rows.size * part.columns.size);
    if (scales.is_present()) scales.Set(i, scale);
    y[i] = T(Wide(x[i]) * InversePower(scale, beta));
  }
};

void LrnWithin(const ops::LrnWithin& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ForEach(ctx, y.count(),
            LrnWithinForward<T>{PlaneWindow(x, op.size), static_cast<A>(op.alpha),
                                static_cast<A>(op.beta), x.as<const T>(), y.as<T>(),
                                OutputNumbers(ctx, 1)});
  });
}

// dx_i = scale_i^-beta dy_i - 2 alpha beta x_i * sum over the windows j that contain i of
//        dy_j x_j scale_j^(-beta - 1) / size_j.  Windows are odd, so these are the ones around i.
template <typename T>
struct LrnWithinBackward {
  using A = Accum<T>;
  PlaneWindow window;
  A factor, beta;
  const T *x, *dy;
  Numbers scales;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const auto part = window.Around(i);
    A sum = 0;
    for (int64_t h = part.rows.begin; h < part.rows.end; ++h) {
      for (int64_t w = part.columns.begin; w < part.columns.end; ++w) {
        const int64_t j = part.At(h, w);
        const A scale = scales.Get<A>(j);
        sum += Wide(dy[j]) * Wide(x[j]) * InversePower(scale, beta) /
               (scale * static_cast<A>(window.SizeAt(h, w)));
      }
    }
    dx[i] = T(InversePower(scales.Get<A>(i), beta) * Wide(dy[i]) - factor * Wide(x[i]) * sum);
  }
};

void LrnWithinGrad(const ops::LrnWithinGrad& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &dx = ctx.output(0);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ForEach(ctx, dx.count(),
            LrnWithinBackward<T>{PlaneWindow(x, op.size), static_cast<A>(2 * op.alpha * op.beta),
                                 static_cast<A>(op.beta), x.as<const T>(),
                                 ctx.input(2).as<const T>(), InputNumbers(ctx, 1), dx.as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LrnWithin, LrnWithin);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LrnWithinGrad, LrnWithinGrad);

}  // namespace
}  // namespace caffe::cuda
