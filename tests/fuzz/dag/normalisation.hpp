// Rounding in layers that subtract a mean and divide by a deviation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caffe/layer.hpp"
#include "tests/fuzz/dag/random_numbers.hpp"

namespace caffe::fuzz {

// (x - mean) / deviation, or its gradient, may be 0 although its terms are not. Errors are relative
// to the terms, so noise relative to the result does not show them: the terms are x / deviation for
// the result, and dy / deviation for its gradient.
class Normalisation {
 public:
  // Returns nothing for layers of other types, and for layers that do not compute statistics.
  static std::optional<Normalisation> Of(const Layer& layer, const Shape& bottom);

  // Adds the rounding of terms whose relative error is `noise`.
  void AddToTop(const double* bottom, double noise, RandomNumbers& random, double* top) const;
  void AddToBottomDiff(const double* bottom, const double* top_diff, double noise,
                       RandomNumbers& random, double* bottom_diff) const;

 private:
  struct Group {
    double mean = 0, deviation = 0;
  };

  Group GroupAt(const double* bottom, int64_t group) const;
  template <typename Fn>
  void ForEach(int64_t group, const Fn& fn) const;

  // The elements of a group: `runs` runs of `run` elements, `stride` apart.
  int64_t groups_ = 0, group_stride_ = 0, runs_ = 1, run_ = 1, stride_ = 0;
  double eps_ = 0;
  bool eps_in_root_ = true, divides_ = true, subtracts_ = true;
};

}  // namespace caffe::fuzz
