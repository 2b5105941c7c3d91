// Iteration: the steps of training, one after the other.
#pragma once

#include <deque>
#include <string>

#include "caffe/solvers/checkpoints.hpp"
#include "caffe/solvers/rates.hpp"
#include "caffe/solvers/smoothed_loss.hpp"
#include "caffe/solvers/solver_context.hpp"
#include "caffe/solvers/updates.hpp"

namespace caffe {

// Numbers are those of this run or, after Restore(), of the one that goes on.
class Iteration {
 public:
  Iteration(const SolverContext& context, const UpdateRule& rule, const Checkpoints& checkpoints);

  // How many have been made.
  int number() const { return number_; }
  // Whether this run has made one, and so may have changed the weights.
  bool has_updated() const { return number_ > first_; }
  const Updates& updates() const { return updates_; }
  SmoothedLoss& loss() { return loss_; }
  double LearningRate() { return rates_.LearningRateAt(number_); }

  // Chooses how the ones that follow are made: by now it is known who looks at them.
  void BeginRun();
  // Makes the next one. Throws Error where its loss is not a number.
  void Run();
  // The mean loss of all ranks in one more forward pass. Throws Error where it is not a number.
  float LossOfWeights() const;
  // Waits for losses and decisions that a device has yet to tell.
  void Finish();
  // An error has ended one. Whether some parameters are updated and others not.
  bool Break();
  // Updates all parameters from their gradients.
  void ApplyUpdate();

  // After Updates::CheckFits().
  void Restore(const SnapshotReader& snapshot);
  void Describe(SolverProgress* progress) const;

 private:
  // How an iteration is made; all have the same result.
  enum class Pace {
    kStep,      // forward, backward, update, each awaited
    kByBucket,  // parameters are updated while backward goes on, as their gradients become final
    kLagging,   // the loss is asked for while the device computes the next iteration
    kReplayed,  // the same, and the update is part of what the device replays
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
  int number_ = 0, first_ = 0;     // first: at the beginning, or of the snapshot that was restored
  std::deque<int> launched_;       // those whose loss is not there yet
  bool continues_window_ = false;  // its losses are those before a resumed run
  bool updates_by_bucket_ = false;
};

}  // namespace caffe
