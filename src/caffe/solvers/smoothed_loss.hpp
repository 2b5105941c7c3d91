// The reported training loss: an average, because the loss of one batch fluctuates.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace caffe {

// Mean of the last `window` losses.
class SmoothedLoss {
 public:
  explicit SmoothedLoss(int window) : window_(static_cast<size_t>(window)) {}

  void Add(float loss) {
    losses_.push_back(loss);
    if (losses_.size() > window_) losses_.pop_front();
    // Summed again each time, because a running sum would keep an infinite loss forever.
    double sum = 0;
    for (const float one : losses_) sum += one;
    mean_ = static_cast<float>(sum / static_cast<double>(losses_.size()));
  }
  // mean() keeps its value until the next loss.
  void Clear() { losses_.clear(); }
  float mean() const { return mean_; }

  std::vector<float> losses() const { return {losses_.begin(), losses_.end()}; }
  void Restore(const std::vector<float>& losses) {
    Clear();
    for (const float loss : losses) Add(loss);
  }

 private:
  size_t window_;
  std::deque<float> losses_;  // oldest first
  float mean_ = 0;
};

}  // namespace caffe
