// StatisticsKeeper: takes back what forward passes did to a net's running statistics.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "caffe/net/training_net.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// Parameters that the forward pass itself writes: BatchNorm's running mean and variance.
std::vector<SyncedTensor*> RunningStatistics(const TrainingNet& net);

// A skipped step must leave the running statistics as they were. The copy is in the device's
// memory, and whether it is needed is decided there, so nothing waits.
class StatisticsKeeper {
 public:
  explicit StatisticsKeeper(const TrainingNet& net);
  void Save();
  // At once, whatever has been decided.
  void Restore();
  // `decision` is what ops::DecideStep made. Launches only; after Bind(), before MarkWritten().
  void RestoreIfSkipped(const TensorView& decision, Stream& stream);
  void Bind();
  void MarkWritten();

 private:
  void Copy(std::span<TensorView> from, std::span<TensorView> to) const;

  std::shared_ptr<Device> device_;
  std::vector<SyncedTensor*> tensors_;
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<TensorView> statistics_, kept_;  // kept_ also has room for the decision
  Kernel save_, restore_;
};

}  // namespace caffe
