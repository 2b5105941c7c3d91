// Local response normalisation across channels.
#include <cmath>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/kernels/inverse_power.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cpu {
namespace {

// Distance between the channels of one pixel, and where a pixel's channels begin.
struct PixelView {
  int64_t channels, pixels, step;
  bool plain;

  explicit PixelView(const TensorView& x)
      : channels(x.shape[1]), pixels(x.shape.count(2)), plain(x.layout == Layout::kPlain) {
    step = plain ? pixels : 1;
  }
  int64_t Offset(int64_t pixel) const {
    return plain ? pixel / pixels * channels * pixels + pixel % pixels : pixel * channels;
  }
};

void Lrn(const ops::Lrn& op, const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const PixelView view(x);
  const int64_t reach = (op.size - 1) / 2;
  const double alpha = op.alpha / static_cast<double>(op.size);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(ctx.output(1).dtype, [&]<typename S>(TypeTag<S>) {
      ParallelFor(x.shape[0] * view.pixels, 16, [&](int64_t begin, int64_t end) {
        for (int64_t pixel = begin; pixel < end; ++pixel) {
          const int64_t at = view.Offset(pixel);
          for (int64_t c = 0; c < view.channels; ++c) {
            double squares = 0;
            for (int64_t k = std::max<int64_t>(0, c - reach);
                 k <= std::min(view.channels - 1, c + reach); ++k) {
              const double value = static_cast<double>(x.as<const T>()[at + k * view.step]);
              squares += value * value;
            }
            const double scale = op.k + alpha * squares;
            const int64_t i = at + c * view.step;
            ctx.output(1).as<S>()[i] = S(scale);
            ctx.output(0).as<T>()[i] =
                T(static_cast<double>(x.as<const T>()[i]) * std::pow(scale, -op.beta));
          }
        }
      });
    });
  });
}

void LrnGrad(const ops::LrnGrad& op, const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const PixelView view(x);
  const int64_t reach = (op.size - 1) / 2;
  const double factor = 2 * op.alpha * op.beta / static_cast<double>(op.size);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(ctx.input(2).dtype, [&]<typename S>(TypeTag<S>) {
      const S* scale = ctx.input(2).as<const S>();
      const T *y = ctx.input(1).as<const T>(), *dy = ctx.input(3).as<const T>();
      ParallelFor(x.shape[0] * view.pixels, 16, [&](int64_t begin, int64_t end) {
        for (int64_t pixel = begin; pixel < end; ++pixel) {
          const int64_t at = view.Offset(pixel);
          for (int64_t c = 0; c < view.channels; ++c) {
            double sum = 0;
            for (int64_t k = std::max<int64_t>(0, c - reach);
                 k <= std::min(view.channels - 1, c + reach); ++k) {
              const int64_t j = at + k * view.step;
              sum += static_cast<double>(dy[j]) * static_cast<double>(y[j]) /
                     static_cast<double>(scale[j]);
            }
            const int64_t i = at + c * view.step;
            const double direct =
                std::pow(static_cast<double>(scale[i]), -op.beta) * static_cast<double>(dy[i]);
            ctx.output(0).as<T>()[i] =
                T(direct - factor * static_cast<double>(x.as<const T>()[i]) * sum);
          }
        }
      });
    });
  });
}

// One pixel of a channels-last image. `padded` has `reach` zeros on both sides of the channels.
template <bool kThreeQuarters, typename T>
CAFFE_CPU_CLONES void LrnPixel(const T* x, int64_t channels, int64_t size, float k, float alpha,
                               float beta, float* padded, T* y, float* scale) {
  const int64_t reach = (size - 1) / 2;
  for (int64_t c = 0; c < channels; ++c) {
    const float value = static_cast<float>(x[c]);
    padded[reach + c] = value * value;
  }
  for (int64_t c = 0; c < channels; ++c) scale[c] = padded[c];
  for (int64_t j = 1; j < size; ++j) {
    for (int64_t c = 0; c < channels; ++c) scale[c] += padded[c + j];
  }
  for (int64_t c = 0; c < channels; ++c) {
    const float s = k + alpha * scale[c];
    scale[c] = s;
    y[c] = T(static_cast<float>(x[c]) * InversePower<kThreeQuarters>(s, beta));
  }
}

template <bool kThreeQuarters, typename T>
CAFFE_CPU_CLONES void LrnGradPixel(const T* x, const T* y, const float* scale, const T* dy,
                                   int64_t channels, int64_t size, float factor, float beta,
                                   float* padded, float* sums, T* dx) {
  const int64_t reach = (size - 1) / 2;
  for (int64_t c = 0; c < channels; ++c)
    padded[reach + c] = static_cast<float>(dy[c]) * static_cast<float>(y[c]) / scale[c];
  for (int64_t c = 0; c < channels; ++c) sums[c] = padded[c];
  for (int64_t j = 1; j < size; ++j) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += padded[c + j];
  }
  for (int64_t c = 0; c < channels; ++c) {
    const float direct = InversePower<kThreeQuarters>(scale[c], beta) * static_cast<float>(dy[c]);
    dx[c] = T(direct - factor * static_cast<float>(x[c]) * sums[c]);
  }
}

// Runs fn(pixel offset, scratch) for all pixels; scratch has 2 * (channels + size) floats of its
// thread, zero at first.
template <typename Fn>
void ForEachPixel(const TensorView& x, int64_t size, void* workspace, int threads, const Fn& fn) {
  const int64_t channels = x.shape[1], pixels = x.count() / channels,
                stride = 2 * (channels + size);
  ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      float* scratch = static_cast<float*>(workspace) + thread * stride;
      std::fill_n(scratch, stride, 0.0f);
      for (int64_t p = pixels * thread / threads; p < pixels * (thread + 1) / threads; ++p) {
        fn(p * channels, scratch);
      }
    }
  });
}

size_t ScratchBytes(const OperandDesc& x, int64_t size, int threads) {
  return static_cast<size_t>(threads) * 2 * (x.shape[1] + size) * sizeof(float);
}

template <typename T>
void LrnChannelsLast(const ops::Lrn& op, int threads, const KernelContext& ctx) {
  const auto pixel = op.beta == 0.75 ? LrnPixel<true, T> : LrnPixel<false, T>;
  const T* x = ctx.input(0).as<const T>();
  T* y = ctx.output(0).as<T>();
  float* scale = ctx.output(1).as<float>();
  const float alpha = static_cast<float>(op.alpha / static_cast<double>(op.size));
  ForEachPixel(ctx.input(0), op.size, ctx.workspace, threads, [&](int64_t at, float* scratch) {
    pixel(x + at, ctx.input(0).shape[1], op.size, static_cast<float>(op.k), alpha,
          static_cast<float>(op.beta), scratch, y + at, scale + at);
  });
}

template <typename T>
void LrnGradChannelsLast(const ops::LrnGrad& op, int threads, const KernelContext& ctx) {
  using Grad = ops::LrnGrad;
  const auto pixel = op.beta == 0.75 ? LrnGradPixel<true, T> : LrnGradPixel<false, T>;
  const T *x = ctx.input(Grad::kX).as<const T>(), *y = ctx.input(Grad::kY).as<const T>(),
          *dy = ctx.input(Grad::kDy).as<const T>();
  const float* scale = ctx.input(Grad::kScale).as<const float>();
  T* dx = ctx.output(0).as<T>();
  const int64_t channels = ctx.input(0).shape[1];
  const float factor = static_cast<float>(2 * op.alpha * op.beta / static_cast<double>(op.size));
  ForEachPixel(ctx.input(0), op.size, ctx.workspace, threads, [&](int64_t at, float* scratch) {
    pixel(x + at, y + at, scale + at, dy + at, channels, op.size, factor,
          static_cast<float>(op.beta), scratch, scratch + channels + op.size, dx + at);
  });
}

template <typename Op, const auto& kRun>
KernelOrRefusal MakeChannelsLast(const Op& op, const KernelRequest& request) {
  if (const auto refusal = RefuseUnlessChannelsLast(request)) return *refusal;
  const int threads = request.device.num_threads();
  const DType type = request.outputs[0].dtype;
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitNarrow(type, [&](auto tag) { kRun(tag, op, threads, ctx); });
                },
                ScratchBytes(request.inputs[0], op.size, threads)};
}

constexpr auto kLrn = []<typename T>(TypeTag<T>, const auto& op, int threads,
                                     const KernelContext& ctx) {
  LrnChannelsLast<T>(op, threads, ctx);
};
constexpr auto kLrnGrad = []<typename T>(TypeTag<T>, const auto& op, int threads,
                                         const KernelContext& ctx) {
  LrnGradChannelsLast<T>(op, threads, ctx);
};

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Lrn, "lrn-channels-last", KernelRank::kGood,
                              (MakeChannelsLast<ops::Lrn, kLrn>), ChannelsLastTraits());
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Lrn, Lrn);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::LrnGrad, "lrn-grad-channels-last",
                              KernelRank::kGood, (MakeChannelsLast<ops::LrnGrad, kLrnGrad>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LrnGrad, LrnGrad);

}  // namespace
}  // namespace caffe::cpu
