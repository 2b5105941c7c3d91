// Iteration: runs the training iterations one after the other.
#pragma once

#include <deque>
#include <string>

#include "caffe/solvers/checkpoints.hpp"
#include "caffe/solvers/rates.hpp"
#include "caffe/solvers/smoothed_loss.hpp"
#include "caffe/solvers/solver_context.hpp"
#include "caffe/solvers/updates.hpp"

namespace caffe {

// Iterations are counted from the start of this run or, after Restore(), of the resumed run.
class Iteration {
 public:
  Iteration(const SolverContext& context, const UpdateRule& rule, const Checkpoints& checkpoints);

  // Number of completed iterations.
  int number() const { return number_; }
  // True if this run has completed an iteration, and so may have changed the weights.
  bool has_updated() const { return number_ > first_; }
  const Updates& updates() const { return updates_; }
  SmoothedLoss& loss() { return loss_; }
  double LearningRate() { return rates_.LearningRateAt(number_); }

  // Chooses how the following iterations are run; observers and callbacks are known by now.
  void BeginRun();
  // Runs the next iteration. Throws Error if its loss is not finite.
  void Run();
  // Returns the mean loss of all ranks in one more forward pass. Throws Error if it is not finite.
  float LossOfWeights() const;
  // Waits for losses and decisions that a device has not reported yet.
  void Finish();
  // Ends an iteration after an error. Returns true if only some parameters are updated.
  bool Break();
  // Updates all parameters from their gradients.
  void ApplyUpdate();

  // Only after Updates::CheckFits().
  void Restore(const SnapshotReader& snapshot);
  void Describe(SolverProgress* progress) const;

 private:
  // How an iteration is run; the results are the same.
  enum class Pace {
    kStep,      // forward, backward, update; waits for each
    kByBucket,  // updates parameters during backward, as their gradients become final
    kLagging,   // waits for the loss while the device computes the next iteration
    kReplayed,  // the same, and the update is part of the replayed graph
  };
  Pace PaceOfRun() const;
  float ForwardBackward(Pace pace);
  float LastPass(TrainingPass pass, float earlier, Pace pace, float* own);
  TrainingPass NextPass(int index) const;
  void BeginPasses();
  void Launch(AppendedWork* update);
  void TakeLosses(size_t left_under_way);
  void TakeLoss(int iteration, float loss);
  StepScalars NextStep();
  void TellRate(const StepScalars& step, const StepReport& measured);

  const SolverContext& context_;
  const Checkpoints& checkpoints_;
  Updates updates_;
  Rates rates_;
  SmoothedLoss loss_;
  Pace pace_ = Pace::kStep;
  int number_ = 0, first_ = 0;     // first_: 0, or that of the restored snapshot
  std::deque<int> launched_;       // iterations whose loss is not known yet
  bool continues_window_ = false;  // the loss window starts with losses before the resume
  bool updates_by_bucket_ = false;
};

}  // namespace caffe
