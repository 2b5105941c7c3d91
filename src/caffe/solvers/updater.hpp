// Updater: a rule applied to all parameters of a net.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/plan/appended_work.hpp"
#include "caffe/solvers/param_groups.hpp"
#include "caffe/solvers/parameter_update.hpp"
#include "caffe/solvers/statistics_keeper.hpp"
#include "caffe/solvers/update_rule.hpp"
#include "caffe/solvers/weight_average.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// What an updater does beyond its rule.
struct UpdaterOptions {
  // One for each learnable parameter of the net; empty: none is changed.
  std::vector<ParamFactors> factors = {};
  // Above 0 it keeps an average of the parameters that learn; not where some are split over ranks.
  double ema_decay = 0;
};

// Owns the rule's state, and that of what steps decide by norms, in the device's memory. Not
// copyable: its operands point into it. Kernels and memory are found once; a step allocates nothing
// and waits for nothing. The Read functions do wait.
//
// A step is made by Step(), as work appended to the net's backward pass after Schedule(), or bucket
// by bucket: Schedule(), Prepare(), LaunchBucket() of each, FinishBuckets(). All make the same
// bits.
class Updater final : public AppendedWork {
 public:
  // `buckets` of gradients, whose parameters may be updated apart; may be empty. Of parameters of
  // layers that are split over ranks each rank updates its part; then all ranks make the same
  // steps, and `others` is needed.
  Updater(const UpdateRule& rule, const ops::DecideStep& decide, Net& net,
          const std::vector<std::vector<SyncedTensor*>>& buckets = {},
          const SumOverRanks& others = {}, const UpdaterOptions& options = {});
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // History blobs in Caffe's order: state 0 of every parameter, then state 1, ...
  const std::vector<std::shared_ptr<Blob>>& history() const { return history_; }

  // Null: none is kept.
  WeightAverage* average() const { return average_.get(); }
  // Each updates some of the parameters that learn.
  const std::vector<std::unique_ptr<ParameterUpdate>>& parts() const { return updates_; }

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

  // False where there are none, or a step needs the norms of all gradients: clipping, gradient
  // scaling.
  bool has_buckets() const { return updates_.size() > 1; }
  // From any thread; several may launch different buckets at a time.
  void LaunchBucket(size_t bucket);
  // After all buckets: updates parameters that are in none.
  void FinishBuckets();

 private:
  void LaunchAverage(Stream& stream);
  std::vector<LearningParameter> LearningParameters(const Net& net,
                                                    const std::vector<ParamFactors>& factors);
  std::optional<PartOfParameter> OwnPart(const Blob& blob) const;
  std::vector<std::unique_ptr<ParameterUpdate>> SplitByBucket(
      const std::vector<std::vector<SyncedTensor*>>& buckets,
      const std::vector<LearningParameter>& parameters, const SumOverRanks& others) const;

  const UpdateRule& rule_;
  TrainingNet net_;
  const ops::DecideStep decide_;
  std::shared_ptr<Device> device_;
  std::vector<std::shared_ptr<Blob>> history_;
  size_t learnable_ = 0;  // parameters, with those that do not learn
  std::array<double, ops::kStepNumbers> numbers_{};
  std::shared_ptr<void> step_memory_;
  TensorView step_;  // numbers_ in the device's memory
  // One per bucket and one of the parameters that are in none; or one of all parameters.
  std::vector<std::unique_ptr<ParameterUpdate>> updates_;
  uint64_t version_ = 0;                          // of kernels and operands, for recordings
  std::unique_ptr<StatisticsKeeper> statistics_;  // where steps may be skipped
  std::unique_ptr<WeightAverage> average_;
};

}  // namespace caffe
