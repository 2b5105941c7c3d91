// StatisticsKeeper: undoes changes of a net's running statistics by forward passes.
#pragma once

#include <vector>

#include "caffe/net/training_net.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/solvers/statistics_blocks.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// Parameters that the forward pass itself writes: BatchNorm's running mean and variance.
std::vector<SyncedTensor*> RunningStatistics(const TrainingNet& net);

// A skipped update must leave the running statistics unchanged. The copy is in device memory, and
// the device decides whether it is needed, so nothing waits.
class StatisticsKeeper {
 public:
  explicit StatisticsKeeper(const TrainingNet& net);
  void Save() { blocks_.Gather(); }
  // Restores unconditionally.
  void Restore() { blocks_.Scatter(); }
  // `decision` is the output of DecideStep. Only launches; call after Bind() and before
  // MarkWritten().
  void RestoreIfSkipped(const TensorView& decision, Stream& stream);
  void Bind() { blocks_.Bind(); }
  void MarkWritten() { blocks_.MarkWritten(); }

 private:
  StatisticsBlocks blocks_;
  std::vector<TensorView> kept_;  // places in the blocks, then a slot for the decision
  Kernel restore_;
};

}  // namespace caffe
