// Updater: a rule applied to all parameters of a net.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/plan/appended_work.hpp"
#include "caffe/plan/executor.hpp"
#include "caffe/solvers/statistics_keeper.hpp"
#include "caffe/solvers/update_rule.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// Owns the rule's state, and that of what steps decide by norms, in the device's memory. Not
// copyable: its operands point into it. Kernels and memory are found once; a step allocates nothing
// and waits for nothing. The Read functions do wait.
//
// A step is made by Step(), or as work appended to the net's backward pass after Schedule().
class Updater final : public AppendedWork {
 public:
  Updater(const UpdateRule& rule, const ops::DecideStep& decide, Net& net);
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // History blobs in Caffe's order: state 0 of every parameter, then state 1, ...
  const std::vector<std::shared_ptr<Blob>>& history() const { return history_; }

  // Gradient scaling, and what the last step came to.
  ops::StepState ReadState() const;
  void WriteState(const ops::StepState& state);
  const ops::StepState* state_on_device() const;
  // What the losses of the next backward pass are to be multiplied by.
  const double* loss_scale() const;

  // LARC's running cosines, one per learnable parameter.
  std::vector<float> ReadCosines() const;
  void WriteCosines(const std::vector<float>& cosines);

  // Before the first forward pass of an iteration: what a skipped step gives back.
  void BeginIteration();
  // The next step's numbers.
  void Schedule(const StepScalars& scalars);
  void Step(const StepScalars& scalars);

  uint64_t Prepare() override;
  void Launch(Stream& stream) override;
  void Finish() override;

 private:
  // A parameter that learns.
  struct ParamStep {
    std::shared_ptr<Blob> blob;
    size_t index = 0;  // among all learnable parameters
    std::vector<std::shared_ptr<Blob>> states;
  };

  void FindDecisionKernels(const ops::MeasureParameters& measure);
  void FindUpdateKernel();
  void BindTensors();
  void Run(const Kernel& kernel, std::span<const TensorView> inputs,
           std::span<const TensorView> outputs, Stream& stream);

  const UpdateRule& rule_;
  TrainingNet net_;
  const ops::DecideStep decide_;
  std::shared_ptr<Device> device_;
  std::vector<std::shared_ptr<Blob>> history_;
  std::vector<ParamStep> steps_;
  std::vector<Net::LearnableParam> learning_;   // as the rule sees them
  std::vector<Executor::KeptCopy> net_copies_;  // all of the plan that copies_ was chosen from
  std::vector<Executor::KeptCopy> copies_;      // that the update writes
  std::vector<Executor::KeptCopy> made_;        // those that were right before it
  Kernel measure_, decide_kernel_, update_;
  uint64_t version_ = 0;  // of kernels and operands, for recordings
  std::array<double, ops::kStepNumbers> numbers_{};
  // In the device's memory.
  TensorView step_, measures_, decision_, state_;
  std::vector<std::shared_ptr<void>> memory_;
  std::shared_ptr<void> workspace_;
  // Operands of measure_, decide_kernel_ and update_.
  std::vector<TensorView> measured_, decide_inputs_, decide_outputs_, inputs_, outputs_;
  std::unique_ptr<StatisticsKeeper> statistics_;  // where steps may be skipped
};

}  // namespace caffe
