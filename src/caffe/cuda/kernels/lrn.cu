// Local response normalisation across channels, of any layout and window. Channels-last tensors
// with windows of 3 or 5, as in every well-known net, are processed in packs (lrn_packs.cuh).
#include <cmath>
#include <initializer_list>
#include <type_traits>

#include "caffe/cuda/kernels/lrn_packs.cuh"
#include "caffe/ops/norm.hpp"

namespace caffe::cuda {
namespace {

// The channels of one pixel, `step` apart, and the reach of a channel's window.
struct ChannelWindow {
  int64_t channels, step, reach;

  ChannelWindow(const TensorDesc& x, int64_t size)
      : channels(x.shape[1]),
        step(x.layout == Layout::kPlain ? x.shape.count(2) : 1),
        reach((size - 1) / 2) {}

  __device__ int64_t ChannelOf(int64_t i) const { return Remainder(Divide(i, step), channels); }
};

// Returns k + alpha / size * the sum of squares over the window of an element.
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

  // Scale of the element at `pixel` + c * step.
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

// Calls run(N, reach) if tensors consist of packs of N channels and a pack is at least as wide as
// the channels needed on each side of it, which is kSides times the reach of windows of `size`
// channels; otherwise returns false.
template <typename T, int kSides, typename Fn>
bool VisitPacks(const TensorView& x, int64_t size, std::initializer_list<const void*> pointers,
                const Fn& run) {
  constexpr int N = kPackSize<T>;
  const bool has_packs = (x.layout == Layout::kChannelsLast || x.shape.count(2) == 1) &&
                         x.shape[1] % N == 0 && x.count() / N <= kMostDividend;
  if (!has_packs) return false;
  for (const void* pointer : pointers) {
    if (!IsPackAligned<T, N>(static_cast<const T*>(pointer))) return false;
  }
  const auto run_with = [&]<int kReach>(std::integral_constant<int, kReach> reach) {
    if constexpr (kSides * kReach <= N) run(std::integral_constant<int, N>{}, reach);
    return kSides * kReach <= N;
  };
  if (size == 3) return run_with(std::integral_constant<int, 1>{});
  return size == 5 && run_with(std::integral_constant<int, 2>{});
}

void Lrn(const ops::Lrn& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const Scales<T> scales(op, x);
    const A beta = static_cast<A>(op.beta);
    const bool is_done =
        VisitPacks<T, 1>(x, op.size, {x.data, y.data},
                         [&]<int N, int kReach>(std::integral_constant<int, N>,
                                                std::integral_constant<int, kReach>) {
                           ForEach(ctx, y.count() / N,
                                   LrnPacks<T, N, kReach>{{Divisor(x.shape[1] / N)},
                                                          {scales.k, scales.alpha},
                                                          beta,
                                                          x.as<const T>(),
                                                          y.as<T>()});
                         });
    if (!is_done) ForEach(ctx, y.count(), LrnForward<T>{scales, beta, y.as<T>()});
  });
}

// A thread computes kStrip neighbouring channels of a pixel, so that it needs the scale of each
// surrounding channel only once.
constexpr int kStrip = 4;

template <typename T>
struct LrnBackward {
  using A = Accum<T>;
  Scales<T> scales;
  A factor, beta;
  ops::ReluGrad relu;  // of slope 1 if there is none
  const T* dy;
  T* dx;
  int64_t strips;  // in a pixel

  __device__ void operator()(int64_t i) const {
    const ChannelWindow& window = scales.window;
    // Neighbouring threads process neighbouring pixels in NCHW tensors, and neighbouring strips
    // otherwise.
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
      if (first + s > last) continue;
      const A x = Wide(scales.x[at]);
      dx[at] = T(relu.Apply(x, direct[s] - factor * x * sums[s]));
    }
  }
};

bool IsReluGradOfX(const ops::Epilogue& epilogue) {
  return epilogue.empty() ||
         (epilogue.size() == 1 && epilogue[0].kind == ops::Pointwise::Kind::kReluGrad &&
          epilogue[0].operand == ops::LrnGrad::kX);
}

void LrnGrad(const ops::LrnGrad& op, const KernelContext& ctx) {
  using Grad = ops::LrnGrad;
  const TensorView &x = ctx.input(Grad::kX), &dx = ctx.output(0);
  const int64_t channels = x.shape[1], strips = (channels + kStrip - 1) / kStrip;
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const Scales<T> scales(op, x);
    const A beta = static_cast<A>(op.beta);
    const A factor = static_cast<A>(2 * op.alpha * op.beta / static_cast<double>(op.size));
    const T* dy = ctx.input(Grad::kDy).as<const T>();
    const ops::ReluGrad relu(op.epilogue.empty() ? 1 : op.epilogue[0].a);
    const auto run = [&]<int N, int kReach, bool kHasRelu>(std::integral_constant<int, N>,
                                                           std::integral_constant<int, kReach>,
                                                           std::bool_constant<kHasRelu>) {
      ForEach(ctx, x.count() / N,
              LrnGradientPacks<T, N, kReach, kHasRelu>{{Divisor(channels / N)},
                                                       {scales.k, scales.alpha},
                                                       beta,
                                                       factor,
                                                       relu,
                                                       x.as<const T>(),
                                                       dy,
                                                       dx.as<T>()});
    };
    const bool is_done =
        VisitPacks<T, 2>(x, op.size, {x.data, dy, dx.data}, [&](auto pack, auto reach) {
          op.epilogue.empty() ? run(pack, reach, std::false_type{})
                              : run(pack, reach, std::true_type{});
        });
    if (is_done) return;
    ForEach(ctx, x.count() / channels * strips,
            LrnBackward<T>{scales, factor, beta, relu, dy, dx.as<T>(), strips});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Lrn, Lrn);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LrnGrad, LrnGrad, IsReluGradOfX);

}  // namespace
}  // namespace caffe::cuda
