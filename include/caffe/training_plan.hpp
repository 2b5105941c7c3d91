// TrainingPlan: predicts steps, memory and time of training by a solver before anything runs.
//
//   const TrainingPlan plan(ReadSolverText("solver.prototxt"), {.keep_all = false});
//   std::cout << FormatPlan(plan.train_net(), {.memory = plan.Memory(), .times = plan.Times()});
#pragma once

#include <memory>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/plan_report.hpp"
#include "caffe/solver_factory.hpp"

namespace caffe {

// The solver's nets, compiled but not allocated.
class CAFFE_EXPORT TrainingPlan {
 public:
  // `options` determine only how and for which device nets are compiled; the solver's fields
  // determine the rest. Throws what the nets' constructors throw.
  TrainingPlan(const SolverParameter& param, NetOptions options,
               const PrepareNet& prepare = nullptr);

  Net& train_net() const { return *train_net_; }
  int solver_states() const { return solver_states_; }

  // The peak resident memory of the process of `caffe train`, with all nets that it builds.
  PlanMemory Memory() const;
  // Times of one pass and of the solver's update; see TimesOfPlan().
  PlanTimes Times() const;
  // The same for a chip that is not present; see RooflineOfPlan().
  PlanTimes Roofline() const;
  // Passes in an iteration: iter_size of the solver.
  int passes() const { return param_.iter_size(); }

 private:
  const int solver_states_;
  SolverParameter param_;  // max_iter is set
  std::unique_ptr<Net> train_net_;
  std::vector<std::unique_ptr<Net>> test_nets_;
};

}  // namespace caffe
