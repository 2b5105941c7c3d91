// Batch normalisation's gradient element by element, for tensors that are not channels-last in
// whole packs.
#pragma once

#include "caffe/cuda/kernels/batch_norm_rows.cuh"
#include "caffe/cuda/reduce.cuh"

namespace caffe::cuda {

template <typename A>
using AffineConstants = ChannelConstants<kAffineConstants, A>;
template <typename A>
using GradientConstants = ChannelConstants<kGradientConstants, A>;

// Stores the constants for given statistics.
template <typename A>
struct StoreAffine {
  Normalisation<A> normalisation;
  AffineConstants<A> constants;

  __device__ void operator()(int64_t c) const { normalisation.Store(c, constants); }
};

// The elementwise counterpart of GradientOperands.
template <typename T, typename Place>
struct ElementOperands {
  using A = Accum<T>;
  const T *x, *dy, *y;       // y is only used with Signs::kOfY
  AffineConstants<A> signs;  // only set with Signs::kOfX
  Place place_of_dy;

  __device__ bool Passes(int64_t c, int64_t i) const {
    if (y != nullptr) return Wide(y[i]) > A(0);
    if (signs.values == nullptr) return true;
    return Wide(x[i]) * signs[kFactor][c] + signs[kShift][c] > kRoundsToZero<T>;
  }
  __device__ A Dy(int64_t c, int64_t i) const {
    return Wide(dy[place_of_dy.At(i)]) * (Passes(c, i) ? A(1) : A(0));
  }
};

template <typename T, typename Place>
struct AddGradients {
  using A = Accum<T>;
  ElementOperands<T, Place> operands;
  Numbers mean;
  T* dresidual;

  __device__ void operator()(int64_t c, int64_t i, Sums<2, A>& sums) const {
    const A dy = operands.Dy(c, i);
    if (dresidual != nullptr) dresidual[i] = T(dy);
    sums.values[0] += dy;
    sums.values[1] += dy * (Wide(operands.x[i]) - mean.Get<A>(c));
  }
};

template <typename T, typename Place>
struct GradientOfInput {
  using A = Accum<T>;
  ElementOperands<T, Place> operands;
  GradientConstants<A> constants;
  int64_t inner;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const int64_t c = Remainder(Divide(i, inner), constants.channels);
    dx[i] = T((Wide(operands.x[i]) - constants[kMean][c]) * constants[kOfX][c] +
              (operands.Dy(c, i) * constants[kOfDy][c] + constants[kRest][c]));
  }
};

}  // namespace caffe::cuda
