// Updater: updates all parameters of a net.
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

// Options of an updater besides its optimizer.
struct UpdaterOptions {
  // One for each learnable parameter of the net; if empty, all factors are 1.
  std::vector<ParamFactors> factors = {};
  // If above 0, keeps an average of the learnable parameters; not supported if some are split over
  // ranks.
  double ema_decay = 0;
};

// Owns, in device memory, the optimizer's state and that of decisions based on norms. Not copyable,
// because its operands point into it. Finds kernels and allocates memory once; an update allocates
// nothing and waits for nothing. The Read functions wait.
//
// An update is made by Step(), as work appended to the net's backward pass after Schedule(), or
// bucket by bucket: Schedule(), Prepare(), LaunchBucket() for each, FinishBuckets(). The results
// are bitwise equal.
class Updater final : public AppendedWork {
 public:
  // `buckets` of gradients, whose parameters may be updated separately; may be empty. Of layers
  // that are split over ranks, each rank updates its part of the parameters; then all ranks must
  // make the same updates, and `others` is required.
  Updater(const UpdateRule& rule, const ops::DecideStep& decide, Net& net,
          const std::vector<std::vector<SyncedTensor*>>& buckets = {},
          const SumOverRanks& others = {}, const UpdaterOptions& options = {});
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // History blobs in Caffe's order: state 0 of every parameter, then state 1, ...
  const std::vector<std::shared_ptr<Blob>>& history() const { return history_; }

  // Null if no average is kept.
  WeightAverage* average() const { return average_.get(); }
  // Each part updates some of the parameters.
  const std::vector<std::unique_ptr<ParameterUpdate>>& parts() const { return updates_; }

  // The state of gradient scaling and the outcome of the last update.
  ops::StepState ReadState() const;
  void WriteState(const ops::StepState& state);
  const ops::StepState* state_on_device() const;
  // Factor for the losses of the next backward pass, in device memory.
  const double* loss_scale() const;

  // LARC's running cosines, one per learnable parameter.
  std::vector<float> ReadCosines() const;
  void WriteCosines(const std::vector<float>& cosines);

  // Called before the first forward pass of an iteration: saves what a skipped update restores.
  void BeginIteration();
  // Sets the scalars of the next update.
  void Schedule(const StepScalars& scalars);
  void Step(const StepScalars& scalars);

  uint64_t Prepare() override;
  void Launch(Stream& stream) override;
  void Finish() override;

  // False if there are no buckets, or an update needs the norm of all gradients, for clipping or
  // gradient scaling.
  bool has_buckets() const { return updates_.size() > 1; }
  // Can be called from any thread; several threads may launch different buckets at a time.
  void LaunchBucket(size_t bucket);
  // Called after all buckets: updates parameters that are in no bucket.
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
  size_t learnable_ = 0;  // all parameters, including frozen ones
  std::array<double, ops::kStepNumbers> numbers_{};
  std::shared_ptr<void> step_memory_;
  TensorView step_;  // numbers_ in device memory
  // One per bucket and one for the other parameters; or a single one for all parameters.
  std::vector<std::unique_ptr<ParameterUpdate>> updates_;
  uint64_t version_ = 0;                          // of kernels and operands, for captured graphs
  std::unique_ptr<StatisticsKeeper> statistics_;  // only if updates may be skipped
  std::unique_ptr<WeightAverage> average_;
};

}  // namespace caffe
