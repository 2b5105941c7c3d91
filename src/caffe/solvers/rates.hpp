// Rates: the learning rate schedule of a run, with the state of multistep and plateau.
#pragma once

#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/parameter_update.hpp"
#include "caffe/solvers/schedule.hpp"
#include "caffe/solvers/solver_state.hpp"

namespace caffe {

// Iterations must be requested in ascending order.
class Rates {
 public:
  // With `logs`, logs each step of the rate. `param` must outlive this object.
  Rates(const SolverParameter& param, bool logs) : param_(param), logs_(logs) {}

  double LearningRateAt(int iteration);
  // Scalars of an update. `smoothed_loss`: mean over the last average_loss iterations.
  StepScalars StepAt(int iteration, double smoothed_loss);

  void Restore(const SolverProgress& progress);
  void Describe(SolverProgress* progress) const;

 private:
  void Reach(int step, int iteration, const char* policy);

  const SolverParameter& param_;
  const bool logs_;
  int current_step_ = 0;
  PlateauState plateau_;
};

}  // namespace caffe
