// Per-channel constants of batch normalisation's passes over memory, computed once per channel:
// divisions and square roots of numbers of any type become a few factors.
#pragma once

#include <cmath>

#include "caffe/cuda/numbers.cuh"

namespace caffe::cuda {

// K arrays with one number per channel, stored one after the other.
template <int K, typename A>
struct ChannelConstants {
  A* values;
  int64_t channels;

  static size_t Bytes(int64_t channels) { return static_cast<size_t>(K * channels) * sizeof(A); }
  __device__ A* operator[](int k) const { return values + k * channels; }
};

// y = x * factor + shift.
enum AffineConstant { kFactor, kShift, kAffineConstants };

// Constants of a channel from its statistics; `statistics_factor` is BVLC's running factor, if
// given.
template <typename A>
struct Normalisation {
  Numbers mean, variance, statistics_factor, gamma, beta;
  A eps;

  __device__ A InverseFactor() const {
    if (!statistics_factor.is_present()) return A(1);
    const A factor = statistics_factor.Get<A>(0);
    return factor == A(0) ? A(0) : A(1) / factor;
  }
  __device__ void Store(int64_t c, const ChannelConstants<kAffineConstants, A>& to) const {
    const A inverse = InverseFactor();
    const A factor = gamma.GetOr<A>(c, A(1)) / std::sqrt(variance.Get<A>(c) * inverse + eps);
    to[kFactor][c] = factor;
    to[kShift][c] = beta.GetOr<A>(c, A(0)) - mean.GetOr<A>(c, A(0)) * inverse * factor;
  }
};

// Computes the same factors and shifts from statistics in the compute type, for a thread that needs
// them for many channels.
template <typename A>
struct PlainNormalisation {
  const A *mean, *variance, *gamma, *beta;  // gamma and beta may be null
  A eps;

  // True if the operands are of this kind.
  static bool Fits(const Normalisation<A>& from) {
    const auto fits = [](const Numbers& numbers) {
      return numbers.data == nullptr || numbers.dtype == kDTypeOf<A>;
    };
    return from.mean.data != nullptr && fits(from.mean) && fits(from.variance) &&
           fits(from.gamma) && fits(from.beta) && from.statistics_factor.data == nullptr;
  }
  explicit PlainNormalisation(const Normalisation<A>& from)
      : mean(static_cast<const A*>(from.mean.data)),
        variance(static_cast<const A*>(from.variance.data)),
        gamma(static_cast<const A*>(from.gamma.data)),
        beta(static_cast<const A*>(from.beta.data)),
        eps(from.eps) {}
  __device__ A Factor(int64_t c) const {
    return (gamma == nullptr ? A(1) : gamma[c]) / std::sqrt(variance[c] + eps);
  }
  __device__ A Shift(int64_t c, A factor) const {
    return (beta == nullptr ? A(0) : beta[c]) - mean[c] * factor;
  }
};

// dx = dy * of_dy + (x - mean) * of_x + rest. The input of a ReLU is recomputed as x * of_dy +
// sign_shift, with the same formula and therefore the same rounding as in the pass that applied it.
enum GradientConstant { kOfDy, kOfX, kRest, kMean, kSignShift, kGradientConstants };

// Gradient constants of a channel, from the sums of dy and of dy * (x - mean) / deviation over its
// m elements:
//   dx = gamma / deviation * (dy - (sum + (x - mean) / deviation * dot) / m).
template <typename A>
struct GradientOfChannel {
  Numbers mean, variance, gamma, beta;
  A eps, count;

  __device__ A InverseDeviation(int64_t c) const {
    return A(1) / std::sqrt(variance.Get<A>(c) + eps);
  }
  __device__ void Store(int64_t c, A sum, A dot,
                        const ChannelConstants<kGradientConstants, A>& to) const {
    const A deviation = std::sqrt(variance.Get<A>(c) + eps), center = mean.Get<A>(c);
    const A factor = gamma.GetOr<A>(c, A(1)) / deviation;
    to[kOfDy][c] = factor;
    to[kOfX][c] = -factor / deviation * dot / count;
    to[kRest][c] = -factor * sum / count;
    to[kMean][c] = center;
    to[kSignShift][c] = beta.GetOr<A>(c, A(0)) - center * factor;
  }
};

}  // namespace caffe::cuda
