// ParameterUpdate: a rule applied to some parameters of a net.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/plan/executor.hpp"
#include "caffe/solvers/update_rule.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// Consecutive elements of a parameter.
struct PartOfParameter {
  int64_t begin = 0, count = 0;
};

// A parameter that learns.
struct LearningParameter {
  Net::LearnableParam param;  // as the rule sees it
  size_t index = 0;           // among all learnable parameters
  std::vector<std::shared_ptr<Blob>> states;
  // What this rank updates of a parameter that is split over ranks.
  std::optional<PartOfParameter> part = {};
};

// How ranks that each update a part of some parameters find the norms of all of them.
struct SumOverRanks {
  int rank = 0, ranks = 1;
  std::function<void(std::span<double> numbers)> sum;  // over all ranks, which call it alike
};

// Finds kernels and memory once; a step allocates nothing and waits for nothing. Several of one net
// may be launched by several threads at a time; all else is for the solver's.
//
// Where a step is decided by norms, they are those of these parameters alone. Those of parts are
// found over the ranks, so a step may wait for the others.
class ParameterUpdate {
 public:
  // `step`: ops::kStepNumbers doubles in the device's memory. The rule and the net outlive this.
  ParameterUpdate(const UpdateRule& rule, const ops::DecideStep& decide, const TrainingNet& net,
                  const TensorView& step, std::vector<LearningParameter> parameters,
                  const SumOverRanks& others);
  ParameterUpdate(const ParameterUpdate&) = delete;
  ParameterUpdate& operator=(const ParameterUpdate&) = delete;

  const std::vector<LearningParameter>& parameters() const { return parameters_; }
  // A StepState followed by LARC's cosines, one per parameter.
  const TensorView& state() const { return state_; }
  // What DecideStep made, where it decides.
  const TensorView& decision() const { return decision_; }

  // Before a step. Whether kernels or addresses are others than before.
  bool Bind();
  // Launches kernels on the stream and does nothing else.
  void Launch(Stream& stream);
  // After the step: says what it has written.
  void Finish();

 private:
  void FindDecisionKernels();
  void FindUpdateKernel();
  bool has_parts() const;
  void MeasureOverRanks() const;
  TensorView AllocateNumbers(size_t count);
  void Run(const Kernel& kernel, std::span<const TensorView> inputs,
           std::span<const TensorView> outputs, Stream& stream);

  const UpdateRule& rule_;
  const ops::DecideStep decide_;
  const TrainingNet net_;
  const std::shared_ptr<Device> device_;
  const std::vector<LearningParameter> parameters_;
  const SumOverRanks others_;
  std::vector<Net::LearnableParam> learning_;
  std::vector<Executor::KeptCopy> net_copies_;  // all of the plan that copies_ was chosen from
  std::vector<Executor::KeptCopy> copies_;      // that the update writes
  std::vector<Executor::KeptCopy> made_;        // those that were right before it
  Kernel measure_, decide_kernel_, update_;
  // In the device's memory.
  TensorView step_, measures_, decision_, state_;
  std::vector<std::shared_ptr<void>> memory_;
  std::shared_ptr<void> workspace_;
  // Operands of measure_, decide_kernel_ and update_.
  std::vector<TensorView> measured_, decide_inputs_, decide_outputs_, inputs_, outputs_;
};

}  // namespace caffe
