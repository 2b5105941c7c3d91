#include <cmath>

#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::cuda {
namespace {

// The channels of one pixel, `step` apart, and how far the window of one of them reaches.
struct ChannelWindow {
  int64_t channels, step, reach;

  ChannelWindow(const TensorDesc& x, int64_t size)
      : channels(x.shape[1]),
        step(x.layout == Layout::kPlain ? x.shape.count(2) : 1),
        reach((size - 1) / 2) {}

  __device__ int64_t ChannelOf(int64_t i) const { return Remainder(Divide(i, step), channels); }
};

// scale^-beta; AlexNet's and GoogLeNet's 0.75 needs two square roots instead of a power.
template <typename A>
__device__ inline A InversePower(A scale, A beta) {
  if (beta != A(0.75)) return std::pow(scale, -beta);
  const A root = std::sqrt(scale);
  return A(1) / (root * std::sqrt(root));
}

// k + alpha / size * the sum of squares over the window of an element.
template <typename T>
struct Scales {
  using A = Accum<T>;
  ChannelWindow window;
  A k, alpha;
  const T* x;

  template <typename Op>
  Scales(const Op& op, const TensorView& view)
      : window(view, op.size),
        k(static_cast<A>(op.k)),
        alpha(static_cast<A>(op.alpha / static_cast<double>(op.size))),
        x(view.as<const T>()) {}

  // Of the element at `pixel` + c * step.
  __device__ A At(int64_t pixel, int64_t c) const {
    const int64_t last = std::min(window.channels - 1, c + window.reach);
    A squares = 0;
    for (int64_t j = std::max<int64_t>(0, c - window.reach); j <= last; ++j) {
      const A value = Wide(x[pixel + j * window.step]);
      squares += value * value;
    }
    return k + alpha * squares;
  }
};

template <typename T>
struct LrnForward {
  using A = Accum<T>;
  Scales<T> scales;
  A beta;
  T* y;

  __device__ void operator()(int64_t i) const {
    const int64_t c = scales.window.ChannelOf(i), pixel = i - c * scales.window.step;
    y[i] = T(Wide(scales.x[i]) * InversePower(scales.At(pixel, c), beta));
  }
};

void Lrn(const ops::Lrn& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(),
            LrnForward<T>{Scales<T>(op, x), static_cast<Accum<T>>(op.beta), y.as<T>()});
  });
}

// A thread computes kStrip neighbouring channels of a pixel, so that it needs the scale of each
// channel around them only once.
constexpr int kStrip = 4;

template <typename T>
struct LrnBackward {
  using A = Accum<T>;
  Scales<T> scales;
  A factor, beta;
  const T* dy;
  T* dx;
  int64_t strips;  // of a pixel

  __device__ void operator()(int64_t i) const {
    const ChannelWindow& window = scales.window;
    // Neighbouring threads have neighbouring pixels in plain tensors, and strips otherwise.
    int64_t within, strip;
    const int64_t outer = Divide(Divide(i, window.step, &within), strips, &strip);
    const int64_t pixel = outer * window.channels * window.step + within;
    const int64_t first = strip * kStrip, last = std::min(first + kStrip, window.channels) - 1;
    A sums[kStrip] = {}, direct[kStrip] = {};
    const int64_t end = std::min(last + window.reach, window.channels - 1);
    for (int64_t c = std::max<int64_t>(0, first - window.reach); c <= end; ++c) {
      const int64_t at = pixel + c * window.step;
      const A scale = scales.At(pixel, c), power = InversePower(scale, beta);
      const A ratio = Wide(dy[at]) * Wide(scales.x[at]) * power / scale;
#pragma unroll
      for (int s = 0; s < kStrip; ++s) {
        const int64_t distance = c - (first + s);
        if (distance >= -window.reach && distance <= window.reach) sums[s] += ratio;
        if (distance == 0) direct[s] = power * Wide(dy[at]);
      }
    }
#pragma unroll
    for (int s = 0; s < kStrip; ++s) {
      const int64_t at = pixel + (first + s) * window.step;
      if (first + s <= last) dx[at] = T(direct[s] - factor * Wide(scales.x[at]) * sums[s]);
    }
  }
};

void LrnGrad(const ops::LrnGrad& op, const KernelContext& ctx) {
  using Grad = ops::LrnGrad;
  const TensorView &x = ctx.input(Grad::kX), &dx = ctx.output(0);
  const int64_t channels = x.shape[1], strips = (channels + kStrip - 1) / kStrip;
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const double factor = 2 * op.alpha * op.beta / static_cast<double>(op.size);
    ForEach(ctx, x.count() / channels * strips,
            LrnBackward<T>{Scales<T>(op, x), static_cast<A>(factor), static_cast<A>(op.beta),
                           ctx.input(Grad::kDy).as<const T>(), dx.as<T>(), strips});
  });
}

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

  // Rows and columns that the window around an element covers, and where its plane lies.
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

// dx_i = scale_i^-beta dy_i - 2 alpha beta x_i * sum over the windows j that hold i of
//        dy_j x_j scale_j^(-beta - 1) / size_j.  Windows are odd, so those are the ones around i.
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

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Lrn, Lrn);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LrnGrad, LrnGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LrnWithin, LrnWithin);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LrnWithinGrad, LrnWithinGrad);

}  // namespace
}  // namespace caffe::cuda
