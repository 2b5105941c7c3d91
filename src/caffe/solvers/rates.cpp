#include "caffe/solvers/rates.hpp"

#include "caffe/solvers/solver_lines.hpp"

namespace caffe {

double Rates::LearningRateAt(int iteration) {
  if (param_.lr_policy() == "multistep")
    Reach(MultiStepAt(param_, iteration, current_step_), iteration, "MultiStep");
  return caffe::LearningRateAt(param_, iteration, current_step_);
}

StepScalars Rates::StepAt(int iteration, double smoothed_loss) {
  if (param_.lr_policy() == "plateau") {
    Reach(PlateauAt(param_, iteration, current_step_, smoothed_loss, &plateau_), iteration,
          "Plateau");
  }
  StepScalars step;
  step.iteration = iteration;
  step.rate = LearningRateAt(iteration);
  step.momentum = MomentumAt(param_, iteration, step.rate);
  step.weight_decay = WeightDecayAt(param_, iteration);
  step.gradient_factor = 1.0 / param_.iter_size();
  return step;
}

void Rates::Reach(int step, int iteration, const char* policy) {
  if (step == current_step_) return;
  current_step_ = step;
  SOLVER_LINE_IF(INFO, logs_) << policy << " Status: Iteration " << iteration
                              << ", step = " << step;
}

void Rates::Restore(const SolverProgress& progress) {
  current_step_ = progress.current_step;
  plateau_ = progress.plateau;
}

void Rates::Describe(SolverProgress* progress) const {
  progress->current_step = current_step_;
  progress->plateau = plateau_;
}

}  // namespace caffe
