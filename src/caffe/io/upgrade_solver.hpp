// Upgrades solver definitions of any age to the current form: `type: "Adam"`.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Replaces the enum solver_type by the string type, and upgrades the nets in the solver. Logs each
// step with `source_name`; returns true if anything changed. Throws InvalidArgument if both
// solver_type and type are set.
CAFFE_EXPORT bool UpgradeSolver(const std::string& source_name, SolverParameter* solver);

}  // namespace caffe
