// Parses SolverParameter's fields for LARC.
#pragma once

#include "caffe/ops/step_rules.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument for an unknown larc_policy, a larc_eta that is not positive, or a solver
// type other than SGD and SAG.
ops::LarcRule ParseLarc(const SolverParameter& param);

}  // namespace caffe
