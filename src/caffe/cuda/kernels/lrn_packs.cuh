// Local response normalisation across channels of channels-last tensors: a thread computes a pack
// of neighbouring channels, and reads the packs on both sides for its windows. Only the result is
// stored.
#pragma once

#include "caffe/cuda/divisor.cuh"
#include "caffe/cuda/pack.cuh"
#include "caffe/cuda/power.cuh"
#include "caffe/ops/pointwise.hpp"

namespace caffe::cuda {

// A pixel's channels in packs of N.
template <typename T, int N>
struct ChannelPacks {
  Divisor per_pixel;

  // Channels -kHalo .. N + kHalo - 1 relative to a pack; zeros beyond the pixel's channels.
  template <int kHalo>
  struct Around {
    Accum<T> values[N + 2 * kHalo];
    bool has_before, has_behind;
    __device__ Accum<T> operator[](int k) const { return values[k + kHalo]; }
    // True if the pixel has channel k.
    __device__ bool Has(int k) const { return k < 0 ? has_before : k < N || has_behind; }
  };

  template <int kHalo>
  __device__ Around<kHalo> Load(const T* x, uint32_t pack) const {
    static_assert(kHalo <= N);
    uint32_t within;
    per_pixel.Divide(pack, &within);
    Around<kHalo> around;
    around.has_before = within > 0;
    around.has_behind = within + 1 < per_pixel.value;
    const Pack<T, N> own = PackAt<T, N>(x, pack);
    const Pack<T, N> before = PackAt<T, N>(x, around.has_before ? pack - 1 : pack);
    const Pack<T, N> behind = PackAt<T, N>(x, around.has_behind ? pack + 1 : pack);
    const WidePack<T, N> wide = Widen(own), low = Widen(before), high = Widen(behind);
#pragma unroll
    for (int k = 0; k < N; ++k) around.values[k + kHalo] = wide.values[k];
#pragma unroll
    for (int k = 0; k < kHalo; ++k) {
      around.values[k] = around.has_before ? low.values[N - kHalo + k] : Accum<T>(0);
      around.values[N + kHalo + k] = around.has_behind ? high.values[k] : Accum<T>(0);
    }
    return around;
  }
};

// log2 of k + alpha / size * the sum of squares of 2 * kReach + 1 channels.
template <int kReach, typename A>
struct LogScale {
  A k, alpha;  // alpha is divided by the window's size

  // Scale for channel c.
  template <typename Channels>
  __device__ A At(const Channels& x, int c) const {
    A squares = 0;
#pragma unroll
    for (int j = -kReach; j <= kReach; ++j) squares += x[c + j] * x[c + j];
    return Log2(k + alpha * squares);
  }
};

template <typename T, int N, int kReach>
struct LrnPacks {
  using A = Accum<T>;
  ChannelPacks<T, N> packs;
  LogScale<kReach, A> scale;
  A beta;
  const T* x;
  T* y;

  __device__ void operator()(int64_t i) const {
    const auto around = packs.template Load<kReach>(x, static_cast<uint32_t>(i));
    WidePack<T, N> result;
#pragma unroll
    for (int c = 0; c < N; ++c) result.values[c] = around[c] * Exp2(-beta * scale.At(around, c));
    StorePack(y, i, result);
  }
};

// dx_i = scale_i^-beta dy_i - factor * x_i * sum_j dy_j x_j scale_j^(-beta - 1), then the gradient
// of the ReLU that produced x.
template <typename T, int N, int kReach, bool kHasRelu>
struct LrnGradientPacks {
  using A = Accum<T>;
  ChannelPacks<T, N> packs;
  LogScale<kReach, A> scale;
  A beta, factor;
  ops::ReluGrad relu;
  const T *x, *dy;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const auto pack = static_cast<uint32_t>(i);
    const auto xs = packs.template Load<2 * kReach>(x, pack);
    const auto dys = packs.template Load<kReach>(dy, pack);
    A ratios[N + 2 * kReach], direct[N];
#pragma unroll
    for (int c = -kReach; c < N + kReach; ++c) {
      const A log = scale.At(xs, c);
      const A ratio = dys[c] * xs[c] * Exp2((-beta - A(1)) * log);
      ratios[c + kReach] = dys.Has(c) ? ratio : A(0);  // outside, 0 * an infinite power may be NaN
      if (c >= 0 && c < N) direct[c] = dys[c] * Exp2(-beta * log);
    }
    WidePack<T, N> result;
#pragma unroll
    for (int c = 0; c < N; ++c) {
      A sum = 0;
#pragma unroll
      for (int j = 0; j <= 2 * kReach; ++j) sum += ratios[c + j];
      const A value = direct[c] - factor * xs[c] * sum;
      result.values[c] = kHasRelu ? relu.Apply(xs[c], value) : value;
    }
    StorePack(dx, i, result);
  }
};

}  // namespace caffe::cuda
