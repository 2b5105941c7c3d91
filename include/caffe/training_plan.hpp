// TrainingPlan: what training by a solver will run and take, before anything runs.
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

// The solver's nets, compiled and not allocated.
class CAFFE_EXPORT TrainingPlan {
 public:
  // Of `options` only what says how and for which device nets are compiled; the solver's fields
  // say the rest. Throws what the nets' constructors do.
  TrainingPlan(const SolverParameter& param, NetOptions options,
               const PrepareNet& prepare = nullptr);

  Net& train_net() const { return *train_net_; }
  int solver_states() const { return solver_states_; }

  // The most that the process of `caffe train` has resident, with all nets that it builds.
  PlanMemory Memory() const;
  // Of a pass, with the solver's update; see TimesOfPlan().
  PlanTimes Times() const;
  // The same for a chip that is not there; see RooflineOfPlan().
  PlanTimes Roofline() const;
  // Passes of an iteration: iter_size of the solver.
  int passes() const { return param_.iter_size(); }

 private:
  const int solver_states_;
  SolverParameter param_;  // with max_iter
  std::unique_ptr<Net> train_net_;
  std::vector<std::unique_ptr<Net>> test_nets_;
};

}  // namespace caffe
