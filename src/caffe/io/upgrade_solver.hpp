// Brings solver definitions of any age into today's form: `type: "Adam"`.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Replaces the enum solver_type by the string type, and upgrades the nets inside the solver.
// Logs each step with `source_name`; returns whether anything changed. Throws InvalidArgument when
// both solver_type and type are given.
CAFFE_EXPORT bool UpgradeSolver(const std::string& source_name, SolverParameter* solver);

}  // namespace caffe
