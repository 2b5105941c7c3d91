// ParameterUpdate: updates some parameters of a net.
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

// A parameter to be updated.
struct LearningParameter {
  Net::LearnableParam param;  // as the optimizer sees it
  size_t index = 0;           // among all learnable parameters
  std::vector<std::shared_ptr<Blob>> states;
  // For a parameter that is split over ranks: the part that this rank updates.
  std::optional<PartOfParameter> part = {};
};

// Sums norms over ranks that each update a part of some parameters.
struct SumOverRanks {
  int rank = 0, ranks = 1;
  std::function<void(std::span<double> numbers)> sum;  // over all ranks; all must call it
};

// Finds kernels and allocates memory once; an update allocates nothing and waits for nothing.
// Several threads may launch different objects of one net at a time; all other methods belong to
// the solver's thread.
//
// Decisions based on norms use the norms of these parameters only. Those of parts are summed over
// the ranks, so the update may wait for other ranks.
class ParameterUpdate {
 public:
  // `step`: ops::kStepNumbers doubles in device memory. `rule` and `net` must outlive this object.
  ParameterUpdate(const UpdateRule& rule, const ops::DecideStep& decide, const TrainingNet& net,
                  const TensorView& step, std::vector<LearningParameter> parameters,
                  const SumOverRanks& others);
  ParameterUpdate(const ParameterUpdate&) = delete;
  ParameterUpdate& operator=(const ParameterUpdate&) = delete;

  const std::vector<LearningParameter>& parameters() const { return parameters_; }
  // A StepState followed by LARC's cosines, one per parameter.
  const TensorView& state() const { return state_; }
  // The output of DecideStep, if updates are decided by norms.
  const TensorView& decision() const { return decision_; }

  // Called before an update. Returns true if kernels or addresses have changed.
  bool Bind();
  // Only launches kernels on the stream.
  void Launch(Stream& stream);
  // Called after the update: marks what it has written.
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
  std::vector<KeptCopy> net_copies_;  // the plan's copies when copies_ was chosen
  std::vector<KeptCopy> copies_;      // the copies that the update writes
  std::vector<KeptCopy> made_;        // those that were valid before the update
  Kernel measure_, decide_kernel_, update_;
  // In device memory.
  TensorView step_, measures_, decision_, state_;
  std::vector<std::shared_ptr<void>> memory_;
  std::shared_ptr<void> workspace_;
  // Operands of measure_, decide_kernel_ and update_.
  std::vector<TensorView> measured_, decide_inputs_, decide_outputs_, inputs_, outputs_;
};

}  // namespace caffe
