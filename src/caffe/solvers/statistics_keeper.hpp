// StatisticsKeeper: takes back what forward passes did to a net's running statistics.
#pragma once

#include <vector>

#include "caffe/net/training_net.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/solvers/statistics_blocks.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// Parameters that the forward pass itself writes: BatchNorm's running mean and variance.
std::vector<SyncedTensor*> RunningStatistics(const TrainingNet& net);

// A skipped step must leave the running statistics as they were. The copy is in the device's
// memory, and whether it is needed is decided there, so nothing waits.
class StatisticsKeeper {
 public:
  explicit StatisticsKeeper(const TrainingNet& net);
  void Save() { blocks_.Gather(); }
  // At once, whatever has been decided.
  void Restore() { blocks_.Scatter(); }
  // `decision` is what ops::DecideStep made. Launches only; after Bind(), before MarkWritten().
  void RestoreIfSkipped(const TensorView& decision, Stream& stream);
  void Bind() { blocks_.Bind(); }
  void MarkWritten() { blocks_.MarkWritten(); }

 private:
  StatisticsBlocks blocks_;
  std::vector<TensorView> kept_;  // the places in the blocks, and room for the decision
  Kernel restore_;
};

}  // namespace caffe
