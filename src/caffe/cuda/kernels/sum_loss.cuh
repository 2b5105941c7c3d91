// Losses: sums over elements or positions in double, then one number. A label outside its classes
// cannot be thrown from a kernel: the loss and the gradients of its item become NaN.
#pragma once

#include <cmath>

#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/cuda/map.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/loss.hpp"

namespace caffe::cuda {

using ops::ClassView;
using ops::IsIgnored;

// One long row of `count` elements.
inline Covered Everything(int64_t count) {
  return {1, 1, count};
}

__device__ inline bool IsClass(int64_t label, int64_t classes) {
  return 0 <= label && label < classes;
}

// The whole part of a label's number; -1 - 2^40, no class, for NaN and what is too large.
template <typename T>
__device__ inline int64_t LabelAt(const T* labels, int64_t position) {
  const T value = labels[position];
  return value > T(-1e9) && value < T(1e9) ? static_cast<int64_t>(value) : -(int64_t{1} << 40);
}

// loss = sum / divisor.
template <typename T>
struct StoreMean {
  double divisor;
  T* loss;

  __device__ void operator()(int64_t, const Sums<1, double>& sums) const {
    *loss = static_cast<T>(sums.values[0] / divisor);
  }
};

// loss = sum 0 / the rule's divisor, sum 1 being the positions that count.
template <typename T>
struct StoreLabelledMean {
  ops::LabelRule rule;
  int64_t outer, inner;
  T* loss;

  __device__ void operator()(int64_t, const Sums<2, double>& sums) const {
    const auto valid = static_cast<int64_t>(sums.values[1]);
    *loss = static_cast<T>(sums.values[0] / rule.Divisor(outer, inner, valid));
  }
};

// Positions whose label counts, for gradients that are divided by their number.
template <typename T>
struct CountValid {
  ops::LabelRule rule;
  const T* labels;

  __device__ void operator()(int64_t, int64_t position, Sums<1, double>& sums) const {
    sums.values[0] += IsIgnored(rule.ignore_label, LabelAt(labels, position)) ? 0 : 1;
  }
};

struct StoreCount {
  double* to;

  __device__ void operator()(int64_t, const Sums<1, double>& sums) const { *to = sums.values[0]; }
};

// dloss / divisor on the device: `valid` is counted by a launch before.
template <typename T>
struct GradientFactor {
  ops::LabelRule rule;
  int64_t outer, inner;
  const T* dloss;
  const double* valid;

  __device__ double operator()() const {
    return static_cast<double>(*dloss) / rule.Divisor(outer, inner, static_cast<int64_t>(*valid));
  }
};

// Workspace of CountValidInto: the count, then the sums' own.
inline size_t ValidWorkspace(int64_t positions) {
  return 16 + SumWorkspace<1, double>(Everything(positions));
}
template <typename T>
const double* CountValidInto(const KernelContext& ctx, const ops::LabelRule& rule, const T* labels,
                             int64_t positions) {
  double* count = static_cast<double*>(ctx.workspace);
  SumCovered<1, double>(ctx, Everything(positions), count + 2, CountValid<T>{rule, labels},
                        StoreCount{count});
  return count;
}

}  // namespace caffe::cuda
