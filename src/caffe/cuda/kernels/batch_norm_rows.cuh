// Batch normalisation's passes over channels-last tensors (channel_rows.cuh).
#pragma once

#include "caffe/cuda/channel_part.cuh"
#include "caffe/cuda/channel_rows.cuh"
#include "caffe/cuda/kernels/batch_norm_constants.cuh"

namespace caffe::cuda {

// Sums of x and x^2 relative to the channel's first element, so that a large mean costs no
// precision.
template <typename T, int N>
struct MomentsOfRows {
  using A = Accum<T>;
  static constexpr int kUnrolled = 8;
  const T* x;

  __device__ WidePack<T, N> Channels(int pack) const { return Widen(Load(pack)); }
  __device__ Pack<T, N> Load(int64_t i) const { return PackAt<T, N>(x, i); }
  __device__ void Add(const WidePack<T, N>& first, const Pack<T, N>& loaded, int64_t,
                      PackSums<2, N, A>& sums) const {
    const WidePack<T, N> wide = Widen(loaded);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const A deviation = wide.values[k] - first.values[k];
      sums.values[0][k] += deviation;
      sums.values[1][k] += deviation * deviation;
    }
  }
};

template <typename A, int N>
struct AffinePack {
  Pack<A, N> factor, shift;
};

// Source of a thread's channel factors and shifts: the previous pass stored them, or the thread
// computes them.
template <typename A>
struct StoredAffine {
  ChannelConstants<kAffineConstants, A> constants;

  template <int N>
  __device__ AffinePack<A, N> At(int pack) const {
    return {PackAt<A, N>(constants[kFactor], pack), PackAt<A, N>(constants[kShift], pack)};
  }
};
template <typename A>
struct GivenAffine {
  PlainNormalisation<A> normalisation;

  template <int N>
  __device__ AffinePack<A, N> At(int pack) const {
    AffinePack<A, N> affine;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int64_t c = static_cast<int64_t>(pack) * N + k;
      const A factor = normalisation.Factor(c);
      affine.factor.values[k] = factor;
      affine.shift.values[k] = normalisation.Shift(c, factor);
    }
    return affine;
  }
};

// y = x * factor + shift, plus a residual, then ReLU.
template <typename T, int N, bool kAdds, bool kHasRelu, typename Source, typename Packs>
struct NormaliseRows {
  using A = Accum<T>;
  using Affine = AffinePack<A, N>;
  static constexpr int kUnrolled = 4;
  Source source;
  const T *x, *residual;
  T* y;
  Packs packs_of_y;

  struct Operands {
    Pack<T, N> x, residual;
  };
  __device__ Affine Channels(int pack) const { return source.template At<N>(pack); }
  __device__ Operands Load(int64_t i) const {
    Operands loaded;
    loaded.x = PackAt<T, N>(x, i);
    if constexpr (kAdds) loaded.residual = PackAt<T, N>(residual, i);
    return loaded;
  }
  __device__ void Store(const Affine& affine, const Operands& loaded, int64_t i) const {
    WidePack<T, N> value = Widen(loaded.x), added{};
    if constexpr (kAdds) added = Widen(loaded.residual);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      A& v = value.values[k];
      v = v * affine.factor.values[k] + affine.shift.values[k];
      if constexpr (kAdds) v += added.values[k];
      if constexpr (kHasRelu) v = v > A(0) ? v : A(0) * v + A(0);  // NaN stays NaN
    }
    StorePack(y, packs_of_y.At(i), value);
  }
};

// Tells the gradient which elements a ReLU after the normalisation has passed.
enum class Signs { kNone, kOfY, kOfX };

// Values not above this become 0 or less when rounded to T: half the smallest number, which rounds
// to even.
template <typename T>
inline constexpr Accum<T> kRoundsToZero = 0;
template <>
inline constexpr float kRoundsToZero<float16> = 0x1p-25f;
template <>
inline constexpr float kRoundsToZero<bfloat16> = 0x1p-134f;

// x * factor + shift was the input of the ReLU.
template <typename A, int N, Signs kSigns>
struct SignConstants {};
template <typename A, int N>
struct SignConstants<A, N, Signs::kOfX> {
  Pack<A, N> factor, shift;
};

// Operands of both passes of the gradient. y is the result of a ReLU, for Signs::kOfY.
template <typename T, int N, Signs kSigns, typename Packs>
struct GradientOperands {
  using A = Accum<T>;
  const T *x, *dy, *y;
  Packs packs_of_dy;

  struct Loaded {
    Pack<T, N> x, dy, y;
  };
  __device__ Loaded Load(int64_t i) const {
    Loaded loaded;
    loaded.dy = PackAt<T, N>(dy, packs_of_dy.At(i));
    if constexpr (kSigns == Signs::kOfY) loaded.y = PackAt<T, N>(y, i);
    loaded.x = PackAt<T, N>(x, i);
    return loaded;
  }
  // Returns dy with the ReLU's gradient applied; NaN stays NaN.
  __device__ static WidePack<T, N> Dy(const Loaded& loaded,
                                      const SignConstants<A, N, kSigns>& signs) {
    WidePack<T, N> dy = Widen(loaded.dy);
    if constexpr (kSigns == Signs::kOfY) {
      const WidePack<T, N> y = Widen(loaded.y);
#pragma unroll
      for (int k = 0; k < N; ++k) dy.values[k] *= y.values[k] > A(0) ? A(1) : A(0);
    } else if constexpr (kSigns == Signs::kOfX) {
      const WidePack<T, N> x = Widen(loaded.x);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const A value = x.values[k] * signs.factor.values[k] + signs.shift.values[k];
        dy.values[k] *= value > kRoundsToZero<T> ? A(1) : A(0);
      }
    }
    return dy;
  }
};

// Sums of dy and of dy * (x - mean), where dy includes the ReLU's gradient. kStores writes that dy
// to dresidual.
template <typename T, int N, Signs kSigns, bool kStores, typename Packs>
struct GradientSumsOfRows {
  using A = Accum<T>;
  using Operands = GradientOperands<T, N, kSigns, Packs>;
  static constexpr int kUnrolled = 4;
  Operands operands;
  Numbers mean;
  PlainNormalisation<A> normalisation;  // only for Signs::kOfX
  T* dresidual;

  struct Constants {
    WidePack<T, N> mean;
    SignConstants<A, N, kSigns> signs;
  };
  __device__ Constants Channels(int pack) const {
    Constants constants;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int64_t c = static_cast<int64_t>(pack) * N + k;
      if constexpr (kSigns == Signs::kOfX) {
        const A factor = normalisation.Factor(c);
        constants.mean.values[k] = normalisation.mean[c];
        constants.signs.factor.values[k] = factor;
        constants.signs.shift.values[k] = normalisation.Shift(c, factor);
      } else {
        constants.mean.values[k] = mean.Get<A>(c);
      }
    }
    return constants;
  }
  __device__ typename Operands::Loaded Load(int64_t i) const {
    return operands.Load(i);
  }
  __device__ void Add(const Constants& constants, const typename Operands::Loaded& loaded,
                      int64_t i, PackSums<2, N, A>& sums) const {
    const WidePack<T, N> dy = Operands::Dy(loaded, constants.signs), wide = Widen(loaded.x);
    if constexpr (kStores) StorePack(dresidual, i, dy);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      sums.values[0][k] += dy.values[k];
      sums.values[1][k] += dy.values[k] * (wide.values[k] - constants.mean.values[k]);
    }
  }
};

template <typename T, int N, Signs kSigns, typename Packs>
struct GradientOfRows {
  using A = Accum<T>;
  using Operands = GradientOperands<T, N, kSigns, Packs>;
  static constexpr int kUnrolled = 4;
  Operands operands;
  ChannelConstants<kGradientConstants, A> constants;
  T* dx;

  struct Constants {
    Pack<A, N> of_dy, of_x, rest, mean;
    SignConstants<A, N, kSigns> signs;
  };
  __device__ Constants Channels(int pack) const {
    Constants kept{PackAt<A, N>(constants[kOfDy], pack),
                   PackAt<A, N>(constants[kOfX], pack),
                   PackAt<A, N>(constants[kRest], pack),
                   PackAt<A, N>(constants[kMean], pack),
                   {}};
    if constexpr (kSigns == Signs::kOfX)
      kept.signs = {kept.of_dy, PackAt<A, N>(constants[kSignShift], pack)};
    return kept;
  }
  __device__ typename Operands::Loaded Load(int64_t i) const { return operands.Load(i); }
  __device__ void Store(const Constants& c, const typename Operands::Loaded& loaded,
                        int64_t i) const {
    const WidePack<T, N> dy = Operands::Dy(loaded, c.signs);
    WidePack<T, N> value = Widen(loaded.x);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      A& v = value.values[k];
      v = (v - c.mean.values[k]) * c.of_x.values[k] +
          (dy.values[k] * c.of_dy.values[k] + c.rest.values[k]);
    }
    StorePack(dx, i, value);
  }
};

}  // namespace caffe::cuda
