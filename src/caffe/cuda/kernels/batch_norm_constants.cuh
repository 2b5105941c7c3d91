// What batch normalisation's passes over memory need of each channel, worked out once per channel:
// divisions and roots of numbers of any type become a few factors.
#pragma once

#include <cmath>

#include "caffe/cuda/numbers.cuh"

namespace caffe::cuda {

// Arrays of a number per channel, one after the other.
template <int K, typename A>
struct ChannelConstants {
  A* values;
  int64_t channels;

  static size_t Bytes(int64_t channels) { return static_cast<size_t>(K * channels) * sizeof(A); }
  __device__ A* operator[](int k) const { return values + k * channels; }
};

// y = x * factor + shift.
enum AffineConstant { kFactor, kShift, kAffineConstants };

// Of a channel, from statistics; `statistics_factor` is BVLC's running one, where given.
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

// dx = dy * of_dy + (x - mean) * of_x + rest.
enum GradientConstant { kOfDy, kOfX, kRest, kMean, kGradientConstants };

// Of a channel, from the sums of dy and of dy * (x - mean) / deviation over its m elements:
//   dx = gamma / deviation * (dy - (sum + (x - mean) / deviation * dot) / m).
template <typename A>
struct GradientOfChannel {
  Numbers mean, variance, gamma;
  A eps, count;

  __device__ A InverseDeviation(int64_t c) const {
    return A(1) / std::sqrt(variance.Get<A>(c) + eps);
  }
  __device__ void Store(int64_t c, A sum, A dot,
                        const ChannelConstants<kGradientConstants, A>& to) const {
    const A inverse = InverseDeviation(c), factor = gamma.GetOr<A>(c, A(1)) * inverse;
    to[kOfDy][c] = factor;
    to[kOfX][c] = -factor * inverse * dot / count;
    to[kRest][c] = -factor * sum / count;
    to[kMean][c] = mean.Get<A>(c);
  }
};

}  // namespace caffe::cuda
