// Local response normalization across channels.
#include <cmath>
#include <vector>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/kernels/inverse_power.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cpu {
namespace {

// Distance between the channels of a pixel, and offsets of pixels.
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

// Sum of at(channel) over the window around channel c.
template <typename Fn>
double SumAround(int64_t c, int64_t channels, int64_t reach, const Fn& at) {
  double sum = 0;
  for (int64_t k = std::max<int64_t>(0, c - reach); k <= std::min(channels - 1, c + reach); ++k)
    sum += at(k);
  return sum;
}

// Calls fn(offset) for each pixel of all images, in parallel.
template <typename Fn>
void ForPixels(const PixelView& view, int64_t images, const Fn& fn) {
  ParallelFor(images * view.pixels, 16, [&](int64_t begin, int64_t end) {
    for (int64_t pixel = begin; pixel < end; ++pixel) fn(view.Offset(pixel));
  });
}

// The scale of channel c: k + alpha / size * sum of squares.
template <typename Op, typename T>
double ScaleAt(const Op& op, const PixelView& view, const T* x, int64_t c) {
  const double squares = SumAround(c, view.channels, (op.size - 1) / 2, [&](int64_t k) {
    const double value = static_cast<double>(x[k * view.step]);
    return value * value;
  });
  return op.k + op.alpha / static_cast<double>(op.size) * squares;
}

void Lrn(const ops::Lrn& op, const KernelContext& ctx) {
  const PixelView view(ctx.input(0));
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForPixels(view, ctx.input(0).shape[0], [&](int64_t at) {
      const T* x = ctx.input(0).as<const T>() + at;
      T* y = ctx.output(0).as<T>() + at;
      for (int64_t c = 0; c < view.channels; ++c) {
        const double value = static_cast<double>(x[c * view.step]);
        y[c * view.step] = T(value * std::pow(ScaleAt(op, view, x, c), -op.beta));
      }
    });
  });
}

void LrnGrad(const ops::LrnGrad& op, const KernelContext& ctx) {
  using Grad = ops::LrnGrad;
  const PixelView view(ctx.input(0));
  const double factor = 2 * op.alpha * op.beta / static_cast<double>(op.size);
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForPixels(view, ctx.input(0).shape[0], [&](int64_t at) {
      static thread_local std::vector<double> powers, ratios;
      powers.resize(view.channels), ratios.resize(view.channels);
      const T *x = ctx.input(Grad::kX).as<const T>() + at,
              *dy = ctx.input(Grad::kDy).as<const T>() + at;
      T* dx = ctx.output(0).as<T>() + at;
      for (int64_t c = 0; c < view.channels; ++c) {
        const double scale = ScaleAt(op, view, x, c);
        powers[c] = std::pow(scale, -op.beta);
        ratios[c] = static_cast<double>(dy[c * view.step]) * static_cast<double>(x[c * view.step]) *
                    powers[c] / scale;
      }
      for (int64_t c = 0; c < view.channels; ++c) {
        const double sum =
            SumAround(c, view.channels, (op.size - 1) / 2, [&](int64_t k) { return ratios[k]; });
        const double value = powers[c] * static_cast<double>(dy[c * view.step]) -
                             factor * static_cast<double>(x[c * view.step]) * sum;
        const int64_t at_c = at + c * view.step;
        dx[c * view.step] = T(ApplyEpilogue(ctx, op.epilogue, c, at_c, value));
      }
    });
  });
}

// Buffers for one pixel of a channels-last image at a time. `padded` has `reach` zeros on both
// sides of the channels.
struct Scratch {
  float *padded, *sums, *powers;

  Scratch(float* memory, int64_t stride)
      : padded(memory), sums(memory + stride), powers(memory + 2 * stride) {}
  static int64_t Stride(int64_t channels, int64_t size) { return channels + size; }
};

// sums[c] = padded[c] + ... + padded[c + size - 1].
inline CAFFE_FORCE_INLINE void SumWindows(const float* padded, int64_t channels, int64_t size,
                                          float* sums) {
  for (int64_t c = 0; c < channels; ++c) sums[c] = padded[c];
  for (int64_t j = 1; j < size; ++j) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += padded[c + j];
  }
}

// Sums of squares over the window around each channel.
template <typename T>
inline CAFFE_FORCE_INLINE void SumSquares(const T* x, int64_t channels, int64_t size,
                                          const Scratch& scratch) {
  float* inner = scratch.padded + (size - 1) / 2;
  for (int64_t c = 0; c < channels; ++c) {
    const float value = static_cast<float>(x[c]);
    inner[c] = value * value;
  }
  SumWindows(scratch.padded, channels, size, scratch.sums);
}

template <bool kThreeQuarters, typename T>
CAFFE_CPU_CLONES void LrnPixel(const T* x, int64_t channels, int64_t size, float k, float alpha,
                               float beta, const Scratch& scratch, T* y) {
  SumSquares(x, channels, size, scratch);
  const float* squares = scratch.sums;
  for (int64_t c = 0; c < channels; ++c) {
    const float scale = k + alpha * squares[c];
    y[c] = T(static_cast<float>(x[c]) * InversePower<kThreeQuarters>(scale, beta));
  }
}

template <bool kThreeQuarters, typename T>
CAFFE_CPU_CLONES void LrnGradPixel(const T* x, const T* dy, int64_t channels, int64_t size, float k,
                                   float alpha, float factor, float beta, const Scratch& scratch,
                                   T* dx) {
  SumSquares(x, channels, size, scratch);
  float *ratios = scratch.padded + (size - 1) / 2, *powers = scratch.powers, *sums = scratch.sums;
  for (int64_t c = 0; c < channels; ++c) {
    const float scale = k + alpha * sums[c];
    powers[c] = InversePower<kThreeQuarters>(scale, beta);
    ratios[c] = static_cast<float>(dy[c]) * static_cast<float>(x[c]) * powers[c] / scale;
  }
  SumWindows(scratch.padded, channels, size, sums);
  for (int64_t c = 0; c < channels; ++c) {
    dx[c] = T(powers[c] * static_cast<float>(dy[c]) - factor * static_cast<float>(x[c]) * sums[c]);
  }
}

// Calls fn(pixel offset, scratch) for all pixels.
template <typename Fn>
void ForEachPixel(const TensorView& x, int64_t size, void* workspace, int threads, const Fn& fn) {
  const int64_t channels = x.shape[1], pixels = x.count() / channels,
                stride = Scratch::Stride(channels, size);
  ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      float* memory = static_cast<float*>(workspace) + thread * 3 * stride;
      std::fill_n(memory, stride, 0.0f);
      for (int64_t p = pixels * thread / threads; p < pixels * (thread + 1) / threads; ++p) {
        fn(p * channels, Scratch(memory, stride));
      }
    }
  });
}

size_t ScratchBytes(const OperandDesc& x, int64_t size, int threads) {
  return static_cast<size_t>(threads) * 3 * Scratch::Stride(x.shape[1], size) * sizeof(float);
}

template <typename T>
void LrnChannelsLast(const ops::Lrn& op, int threads, const KernelContext& ctx) {
  const auto pixel = op.beta == 0.75 ? LrnPixel<true, T> : LrnPixel<false, T>;
  const T* x = ctx.input(0).as<const T>();
  T* y = ctx.output(0).as<T>();
  const float alpha = static_cast<float>(op.alpha / static_cast<double>(op.size));
  ForEachPixel(ctx.input(0), op.size, ctx.workspace, threads,
               [&](int64_t at, const Scratch& scratch) {
                 pixel(x + at, ctx.input(0).shape[1], op.size, static_cast<float>(op.k), alpha,
                       static_cast<float>(op.beta), scratch, y + at);
               });
}

template <typename T>
void LrnGradChannelsLast(const ops::LrnGrad& op, int threads, const KernelContext& ctx) {
  using Grad = ops::LrnGrad;
  const auto pixel = op.beta == 0.75 ? LrnGradPixel<true, T> : LrnGradPixel<false, T>;
  const T *x = ctx.input(Grad::kX).as<const T>(), *dy = ctx.input(Grad::kDy).as<const T>();
  T* dx = ctx.output(0).as<T>();
  const double alpha = op.alpha / static_cast<double>(op.size);
  ForEachPixel(ctx.input(0), op.size, ctx.workspace, threads,
               [&](int64_t at, const Scratch& scratch) {
                 pixel(x + at, dy + at, ctx.input(0).shape[1], op.size, static_cast<float>(op.k),
                       static_cast<float>(alpha), static_cast<float>(2 * alpha * op.beta),
                       static_cast<float>(op.beta), scratch, dx + at);
               });
}

template <typename Op, const auto& kRun>
KernelOrRefusal MakeLrnChannelsLast(const Op& op, const KernelRequest& request) {
  if (const auto refusal = RefuseUnlessChannelsLast(request)) return *refusal;
  // The loops iterate over the whole window, even over positions without a channel.
  if (op.size > 2 * request.inputs[0].shape[1])
    return Refusal{"a window beyond all channels on both sides"};
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
                              (MakeLrnChannelsLast<ops::Lrn, kLrn>), ChannelsLastTraits());
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Lrn, Lrn);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::LrnGrad, "lrn-grad-channels-last",
                              KernelRank::kGood, (MakeLrnChannelsLast<ops::LrnGrad, kLrnGrad>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LrnGrad, LrnGrad, FusesAny);

}  // namespace
}  // namespace caffe::cpu
