// SmoothedLoss: mean of the last losses.
#pragma once

#include <cstddef>
#include <vector>

namespace caffe {

class SmoothedLoss {
 public:
  explicit SmoothedLoss(int window) : window_(static_cast<size_t>(window)) {}

  void Add(double loss) {
    if (losses_.size() < window_) {
      losses_.push_back(loss);
    } else {
      losses_[next_] = loss;
      next_ = (next_ + 1) % window_;
    }
    // Summed anew: a running sum would keep the rounding errors, or one NaN, for ever.
    double sum = 0;
    for (const double value : losses_) sum += value;
    value_ = sum / static_cast<double>(losses_.size());
  }
  void Clear() { losses_.clear(), next_ = 0; }
  double value() const { return value_; }

 private:
  size_t window_, next_ = 0;
  std::vector<double> losses_;
  double value_ = 0;
};

}  // namespace caffe
