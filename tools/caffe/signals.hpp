// What signals do while a solver trains: -sigint_effect, -sighup_effect, -sigterm_effect.
#pragma once

#include "caffe/solver.hpp"

namespace caffe::tools {

// From now on the solver looks after each iteration for signals that have come. Throws
// InvalidArgument for a flag with another value than snapshot, stop or none.
void HandleSignals(Solver& solver);

}  // namespace caffe::tools
