// Local response normalization within a channel: windows over the plane, with the divisor of AVE
// pooling.
#include <cmath>
#include <vector>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/kernels/inverse_power.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::cpu {
namespace {

// Windows of stride 1 around each element of N,C,H,W images. Their size is odd and they are clipped
// symmetrically, so the windows that contain an element are those around the elements of its own.
struct Windows {
  int64_t channels, height, width, images;
  ops::PoolGeometry geometry;

  Windows(const Shape& shape, int64_t size)
      : channels(shape[1]),
        height(shape[2]),
        width(shape[3]),
        images(shape[0]),
        geometry{
            .kernel = {size, size}, .stride = {1, 1}, .pad = {(size - 1) / 2, (size - 1) / 2}} {}

  ops::PoolWindow Rows(int64_t h) const { return ops::WindowAt(geometry, 0, height, h); }
  ops::PoolWindow Columns(int64_t w) const { return ops::WindowAt(geometry, 1, width, w); }
  int64_t SizeAt(int64_t h, int64_t w) const { return Rows(h).size * Columns(w).size; }

  // Calls fn(h, w) for the elements of the window around (h, w) that are inside the image.
  template <typename Fn>
  void ForEachIn(int64_t h, int64_t w, const Fn& fn) const {
    const ops::PoolWindow rows = Rows(h), columns = Columns(w);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) fn(i, j);
    }
  }
};

// Offsets of the elements of one channel of one image.
struct Plane {
  int64_t begin, step, width;
  int64_t At(int64_t h, int64_t w) const { return begin + (h * width + w) * step; }
};

// Calls fn(plane) for every channel of every image, in parallel.
template <typename Fn>
void ForEachPlane(const Windows& windows, Layout layout, const Fn& fn) {
  const int64_t pixels = windows.height * windows.width;
  ParallelFor(windows.images * windows.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / windows.channels, c = p % windows.channels;
      fn(layout == Layout::kPlain
             ? Plane{p * pixels, 1, windows.width}
             : Plane{n * pixels * windows.channels + c, windows.channels, windows.width});
    }
  });
}

template <typename Fn>
void ForEachElement(const Windows& windows, const Fn& fn) {
  for (int64_t h = 0; h < windows.height; ++h) {
    for (int64_t w = 0; w < windows.width; ++w) fn(h, w);
  }
}

// Sums over the windows of a plane. Rows are summed first, so that a window costs its height plus
// its width, not their product. Term(h, w) is called once for each element.
class WindowSums {
 public:
  template <typename Term>
  WindowSums(const Windows& windows, const Term& term) : windows_(windows) {
    terms_.resize(windows.height * windows.width);
    of_rows_.resize(terms_.size());
    ForEachElement(windows, [&](int64_t h, int64_t w) { terms_[At(h, w)] = term(h, w); });
    ForEachElement(windows, [&](int64_t h, int64_t w) {
      const ops::PoolWindow columns = windows.Columns(w);
      double sum = 0;
      for (int64_t j = columns.begin; j < columns.end; ++j) sum += terms_[At(h, j)];
      of_rows_[At(h, w)] = sum;
    });
  }

  double Around(int64_t h, int64_t w) const {
    const ops::PoolWindow rows = windows_.Rows(h);
    double sum = 0;
    for (int64_t i = rows.begin; i < rows.end; ++i) sum += of_rows_[At(i, w)];
    return sum;
  }

 private:
  int64_t At(int64_t h, int64_t w) const { return h * windows_.width + w; }

  const Windows& windows_;
  static thread_local std::vector<double> terms_, of_rows_;
};

thread_local std::vector<double> WindowSums::terms_, WindowSums::of_rows_;

void LrnWithin(const ops::LrnWithin& op, const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const Windows windows(x.shape, op.size);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    const T* in = x.as<const T>();
    ForEachPlane(windows, x.layout, [&](const Plane& plane) {
      const WindowSums squares(windows, [&](int64_t h, int64_t w) {
        const double value = static_cast<double>(in[plane.At(h, w)]);
        return value * value;
      });
      ForEachElement(windows, [&](int64_t h, int64_t w) {
        const double mean = squares.Around(h, w) / static_cast<double>(windows.SizeAt(h, w));
        const double scale = 1 + op.alpha * mean;
        const int64_t at = plane.At(h, w);
        if (ctx.has_output(1)) SetElement(ctx.output(1), at, scale);
        ctx.output(0).as<T>()[at] = T(static_cast<double>(in[at]) * std::pow(scale, -op.beta));
      });
    });
  });
}

// dx_i = scale_i^-beta dy_i - 2 alpha beta x_i * sum over the windows j that contain i of
//        dy_j x_j scale_j^(-beta - 1) / size_j
void LrnWithinGrad(const ops::LrnWithinGrad& op, const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const Windows windows(x.shape, op.size);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(ctx.input(1).dtype, [&]<typename S>(TypeTag<S>) {
      const T *in = x.as<const T>(), *dy = ctx.input(2).as<const T>();
      const S* scale = ctx.input(1).as<const S>();
      ForEachPlane(windows, x.layout, [&](const Plane& plane) {
        const WindowSums spread(windows, [&](int64_t h, int64_t w) {
          const int64_t at = plane.At(h, w);
          return static_cast<double>(dy[at]) * static_cast<double>(in[at]) *
                 std::pow(static_cast<double>(scale[at]), -op.beta - 1) /
                 static_cast<double>(windows.SizeAt(h, w));
        });
        ForEachElement(windows, [&](int64_t h, int64_t w) {
          const int64_t at = plane.At(h, w);
          const double direct =
              std::pow(static_cast<double>(scale[at]), -op.beta) * static_cast<double>(dy[at]);
          ctx.output(0).as<T>()[at] = T(
              direct - 2 * op.alpha * op.beta * static_cast<double>(in[at]) * spread.Around(h, w));
        });
      });
    });
  });
}

// For channels-last images: each call handles the channels of one pixel, in the inner loop.
CAFFE_CPU_CLONES void Add(const float* x, float* sum, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) sum[c] += x[c];
}
template <typename T>
CAFFE_CPU_CLONES void AddSquares(const T* x, float* sum, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    const float value = static_cast<float>(x[c]);
    sum[c] += value * value;
  }
}
// `scale`: sums of squares on entry, scales on return.
template <bool kThreeQuarters, typename T>
CAFFE_CPU_CLONES void Normalise(const T* x, float share, float beta, float* scale, T* y,
                                int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    scale[c] = 1 + share * scale[c];
    y[c] = T(static_cast<float>(x[c]) * InversePower<kThreeQuarters>(scale[c], beta));
  }
}
// Contribution of an element to the gradients of all elements of its window.
template <bool kThreeQuarters, typename T>
CAFFE_CPU_CLONES void Spread(const T* x, const float* scale, const T* dy, float share, float beta,
                             float* spread, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    spread[c] = share * static_cast<float>(dy[c]) * static_cast<float>(x[c]) *
                InversePower<kThreeQuarters>(scale[c], beta) / scale[c];
  }
}
// `sums`: window sums of the results of Spread().
template <bool kThreeQuarters, typename T>
CAFFE_CPU_CLONES void Gradient(const T* x, const float* scale, const T* dy, float factor,
                               float beta, const float* sums, T* dx, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    const float direct = InversePower<kThreeQuarters>(scale[c], beta) * static_cast<float>(dy[c]);
    dx[c] = T(direct - factor * static_cast<float>(x[c]) * sums[c]);
  }
}

template <bool kThreeQuarters, typename T>
void LrnWithinChannelsLast(const ops::LrnWithin& op, const KernelContext& ctx) {
  const Windows windows(ctx.input(0).shape, op.size);
  const int64_t channels = windows.channels, row_step = windows.width * channels;
  const float beta = static_cast<float>(op.beta);
  ParallelFor(windows.images * windows.height, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / windows.height * windows.height * row_step;
      const T* x = ctx.input(0).as<const T>() + image;
      T* y = ctx.output(0).as<T>() + image;
      float* scales = ctx.has_output(1) ? ctx.output(1).as<float>() + image : nullptr;
      const int64_t h = row % windows.height;
      for (int64_t w = 0; w < windows.width; ++w) {
        const double share = op.alpha / static_cast<double>(windows.SizeAt(h, w));
        ForEachChannelBlock(channels, [&](int64_t first, int64_t count) {
          const int64_t at = h * row_step + w * channels + first;
          float scale[kChannelBlock] = {};
          windows.ForEachIn(h, w, [&](int64_t i, int64_t j) {
            AddSquares(x + i * row_step + j * channels + first, scale, count);
          });
          Normalise<kThreeQuarters>(x + at, static_cast<float>(share), beta, scale, y + at, count);
          if (scales != nullptr) std::copy_n(scale, count, scales + at);
        });
      }
    }
  });
}

// `workspace` has room for one image per thread.
template <bool kThreeQuarters, typename T>
void LrnWithinGradChannelsLast(const ops::LrnWithinGrad& op, const KernelContext& ctx,
                               int threads) {
  using Grad = ops::LrnWithinGrad;
  const Windows windows(ctx.input(0).shape, op.size);
  const int64_t channels = windows.channels, row_step = windows.width * channels;
  const int64_t image_size = windows.height * row_step;
  const float beta = static_cast<float>(op.beta);
  const float factor = static_cast<float>(2 * op.alpha * op.beta);
  const auto image_of_thread = [&](int64_t n, float* spread) {
    const T* x = ctx.input(Grad::kX).as<const T>() + n * image_size;
    const float* scale = ctx.input(Grad::kScale).as<const float>() + n * image_size;
    const T* dy = ctx.input(Grad::kDy).as<const T>() + n * image_size;
    T* dx = ctx.output(0).as<T>() + n * image_size;
    for (int64_t h = 0; h < windows.height; ++h) {
      for (int64_t w = 0; w < windows.width; ++w) {
        const int64_t at = h * row_step + w * channels;
        Spread<kThreeQuarters>(x + at, scale + at, dy + at,
                               1.0f / static_cast<float>(windows.SizeAt(h, w)), beta, spread + at,
                               channels);
      }
    }
    for (int64_t h = 0; h < windows.height; ++h) {
      for (int64_t w = 0; w < windows.width; ++w) {
        const int64_t at = h * row_step + w * channels;
        ForEachChannelBlock(channels, [&](int64_t first, int64_t count) {
          float sums[kChannelBlock] = {};
          windows.ForEachIn(h, w, [&](int64_t i, int64_t j) {
            Add(spread + i * row_step + j * channels + first, sums, count);
          });
          const int64_t k = at + first;
          Gradient<kThreeQuarters>(x + k, scale + k, dy + k, factor, beta, sums, dx + k, count);
        });
      }
    }
  };
  ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      float* spread = static_cast<float*>(ctx.workspace) + thread * image_size;
      for (int64_t n = windows.images * thread / threads;
           n < windows.images * (thread + 1) / threads; ++n) {
        image_of_thread(n, spread);
      }
    }
  });
}

KernelOrRefusal MakeLrnWithin(const ops::LrnWithin& op, const KernelRequest& request) {
  if (const auto refusal = RefuseUnlessChannelsLast(request)) return *refusal;
  const DType type = request.outputs[0].dtype;
  return Kernel{"", [=](const KernelContext& ctx) {
                  VisitNarrow(type, [&]<typename T>(TypeTag<T>) {
                    const auto run = op.beta == 0.75 ? LrnWithinChannelsLast<true, T>
                                                     : LrnWithinChannelsLast<false, T>;
                    run(op, ctx);
                  });
                }};
}

KernelOrRefusal MakeLrnWithinGrad(const ops::LrnWithinGrad& op, const KernelRequest& request) {
  if (const auto refusal = RefuseUnlessChannelsLast(request)) return *refusal;
  const int threads = request.device.num_threads();
  const DType type = request.outputs[0].dtype;
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitNarrow(type, [&]<typename T>(TypeTag<T>) {
                    const auto run = op.beta == 0.75 ? LrnWithinGradChannelsLast<true, T>
                                                     : LrnWithinGradChannelsLast<false, T>;
                    run(op, ctx, threads);
                  });
                },
                static_cast<size_t>(threads * request.inputs[0].shape.count(1)) * sizeof(float)};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::LrnWithin, "lrn-within-channels-last",
                              KernelRank::kGood, MakeLrnWithin, ChannelsLastTraits());
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LrnWithin, LrnWithin);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::LrnWithinGrad, "lrn-within-grad-channels-last",
                              KernelRank::kGood, MakeLrnWithinGrad, ChannelsLastTraits());
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LrnWithinGrad, LrnWithinGrad);

}  // namespace
}  // namespace caffe::cpu
