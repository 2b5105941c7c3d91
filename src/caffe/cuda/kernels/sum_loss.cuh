// Losses: sums over elements or positions in double, reduced to one number. A kernel cannot throw
// for an invalid label, so the loss and the gradients of its item become NaN.
#pragma once

#include <cmath>

#include "caffe/cuda/map.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/loss.hpp"

namespace caffe::cuda {

using ops::ClassView;
using ops::IsIgnored;

// A single row of `count` elements.
inline Covered Everything(int64_t count) {
  return {1, 1, count};
}

__device__ inline bool IsClass(int64_t label, int64_t classes) {
  return 0 <= label && label < classes;
}

// The integer part of a label; -2^40, which is not a class, for NaN and values that are too large.
__device__ inline int64_t LabelAt(const Numbers& labels, int64_t position) {
  const double value = labels.Get<double>(position);
  return value > -1e9 && value < 1e9 ? static_cast<int64_t>(value) : -(int64_t{1} << 40);
}

// loss = sum / divisor.
struct StoreMean {
  double divisor;
  Numbers loss;

  __device__ void operator()(int64_t, const Sums<1, double>& sums) const {
    loss.Set(0, sums.values[0] / divisor);
  }
};

// loss = sum 0 / the divisor of the LabelRule, where sum 1 is the number of labels that count.
struct StoreLabelledMean {
  ops::LabelRule rule;
  int64_t outer, inner;
  Numbers loss;

  __device__ void operator()(int64_t, const Sums<2, double>& sums) const {
    const auto valid = static_cast<int64_t>(sums.values[1]);
    loss.Set(0, sums.values[0] / rule.Divisor(outer, inner, valid));
  }
};

// Counts the positions with a label that counts, for gradients that are divided by their number.
struct CountValid {
  ops::LabelRule rule;
  Numbers labels;

  __device__ void operator()(int64_t, int64_t position, Sums<1, double>& sums) const {
    sums.values[0] += IsIgnored(rule.ignore_label, LabelAt(labels, position)) ? 0 : 1;
  }
};

struct StoreCount {
  double* to;

  __device__ void operator()(int64_t, const Sums<1, double>& sums) const { *to = sums.values[0]; }
};

// dloss / divisor, computed on the device; an earlier launch counted `valid`.
struct GradientFactor {
  ops::LabelRule rule;
  int64_t outer, inner;
  Numbers dloss;
  const double* valid;

  __device__ double operator()() const {
    return dloss.Get<double>(0) / rule.Divisor(outer, inner, static_cast<int64_t>(*valid));
  }
};

// Workspace of CountValidInto: the count, then that of the sums.
inline size_t ValidWorkspace(int64_t positions) {
  return 16 + SumWorkspace<1, double>(Everything(positions));
}
inline const double* CountValidInto(const KernelContext& ctx, const ops::LabelRule& rule,
                                    const Numbers& labels, int64_t positions) {
  double* count = static_cast<double*>(ctx.workspace);
  SumCovered<1, double>(ctx, Everything(positions), count + 2, CountValid{rule, labels},
                        StoreCount{count});
  return count;
}

}  // namespace caffe::cuda
