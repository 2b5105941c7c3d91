// StatisticsKeeper: takes back what forward passes did to a net's running statistics.
#pragma once

#include <vector>

#include "caffe/net.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// Parameters that the forward pass itself writes: BatchNorm's running mean and variance.
std::vector<SyncedTensor*> RunningStatistics(const Net& net);

// A skipped step must leave the running statistics as they were.
class StatisticsKeeper {
 public:
  explicit StatisticsKeeper(const Net& net);
  void Save();
  void Restore();

 private:
  struct Kept {
    SyncedTensor* tensor;
    std::vector<char> bytes;
  };
  Device& device_;
  std::vector<Kept> kept_;
};

}  // namespace caffe
