// Class losses of prior boxes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "caffe/layers/detection/detection_blobs.hpp"

namespace caffe {

// The scores of one prior box at a time: their class loss and its gradient.
class ClassScores {
 public:
  ClassScores(int classes, bool is_softmax)
      : is_softmax_(is_softmax), scores_(classes), exponentials_(is_softmax ? classes : 0) {}

  // Reads the scores from element `first` of `view` on.
  void Read(const TensorView& view, int64_t first) {
    ReadElements(view, first, static_cast<int64_t>(scores_.size()), scores_.data());
    if (!is_softmax_) return;
    largest_ = *std::max_element(scores_.begin(), scores_.end());
    sum_ = 0;
    for (size_t c = 0; c < scores_.size(); ++c) {
      exponentials_[c] = std::exp(scores_[c] - largest_);
      sum_ += exponentials_[c];
    }
  }

  double Loss(int label) const {
    if (is_softmax_) return std::log(sum_) + largest_ - scores_[label];
    double loss = 0;
    for (size_t c = 0; c < scores_.size(); ++c) {
      const double x = scores_[c], t = static_cast<int>(c) == label;
      loss += std::log1p(std::exp(-std::abs(x))) - x * (t - static_cast<double>(x >= 0));
    }
    return loss;
  }

  // Adds `factor` times the gradient.
  void AddGradient(int label, double factor, double* gradient) const {
    for (size_t c = 0; c < scores_.size(); ++c) {
      const double p =
          is_softmax_ ? exponentials_[c] / sum_ : 0.5 * std::tanh(0.5 * scores_[c]) + 0.5;
      gradient[c] += factor * (p - static_cast<double>(static_cast<int>(c) == label));
    }
  }

 private:
  const bool is_softmax_;
  std::vector<double> scores_, exponentials_;
  double largest_ = 0, sum_ = 0;
};

}  // namespace caffe
