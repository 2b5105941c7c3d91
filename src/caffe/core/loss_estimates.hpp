// Estimates of softmax losses in floats, which find the rows whose loss may be among the largest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "caffe/core/cpu_clones.hpp"
#include "caffe/dtype.hpp"

namespace caffe {

// The largest error of an estimate.
inline double ErrorOfEstimates(int classes) {
  return 5e-4 * classes;
}

// Estimates the loss of `label` for rows of scores. The estimate is NaN if there is no bound of its
// error. exp(x) for x <= 0 is computed as (1 + x / 1024)^1024, with an error of at most 4e-4.
template <typename T>
CAFFE_CPU_CLONES void EstimateLosses(const T* scores, int64_t rows, int classes, int label,
                                     double* estimates) {
  using A = Accum<T>;
  constexpr int kLanes = 8;
  constexpr double kLargestScore = 1e6;
  for (int64_t i = 0; i < rows; ++i) {
    const T* const row = scores + i * classes;
    A largest = static_cast<A>(row[0]);
    for (int c = 1; c < classes; ++c) largest = std::max(largest, static_cast<A>(row[c]));
    float sums[kLanes] = {};
    const auto add = [&](int lane, int c) {
      const float x = static_cast<float>(static_cast<A>(row[c]) - largest);
      float y = 1.0F + x * (1.0F / 1024);
      y = 0.5F * (std::abs(y) + y);  // 0 if negative; NaN stays NaN
      for (int square = 0; square < 10; ++square) y *= y;
      sums[lane] += y;
    };
    int c = 0;
    for (; c + kLanes <= classes; c += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) add(lane, c + lane);
    }
    for (int lane = 0; c + lane < classes; ++lane) add(lane, c + lane);
    float sum = 0;
    for (const float part : sums) sum += part;
    const double label_score = static_cast<double>(static_cast<A>(row[label]));
    const double most = static_cast<double>(largest);
    const bool is_bounded =
        std::abs(most) <= kLargestScore && std::abs(label_score) <= kLargestScore;
    estimates[i] = is_bounded ? static_cast<double>(std::log(sum)) + most - label_score
                              : std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace caffe
