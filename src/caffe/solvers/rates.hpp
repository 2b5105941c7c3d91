// Rates: the schedule of a run, with what multistep and plateau remember.
#pragma once

#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/parameter_update.hpp"
#include "caffe/solvers/schedule.hpp"
#include "caffe/solvers/solver_state.hpp"

namespace caffe {

// Iterations are asked for in rising order.
class Rates {
 public:
  // With `logs`, says when a step is reached. `param` outlives this.
  Rates(const SolverParameter& param, bool logs) : param_(param), logs_(logs) {}

  double LearningRateAt(int iteration);
  // The numbers of an update. `smoothed_loss`: mean over the last average_loss iterations.
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
