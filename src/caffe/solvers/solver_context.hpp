// Shared data of the parts of a solver; outlives all of them.
#pragma once

#include <vector>

#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/solver.hpp"
#include "caffe/solvers/data_parallel.hpp"
#include "caffe/solvers/training_progress.hpp"

namespace caffe {

struct SolverContext {
  const SolverParameter& param;
  const SolverOptions& options;
  Net& net;
  TrainingNet& training_net;  // a view of net
  DataParallel& parallel;
  TrainingProgress& reporter;
  const std::vector<Solver::Callbacks>& callbacks;

  bool IsDisplayed(int iteration) const {
    return param.display() > 0 && iteration % param.display() == 0;
  }
  bool LogsValues(int iteration) const {
    return param.debug_info() && IsDisplayed(iteration) && parallel.is_root();
  }
};

}  // namespace caffe
