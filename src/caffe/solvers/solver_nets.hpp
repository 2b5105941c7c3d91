// The nets that a SolverParameter names.
#pragma once

#include <vector>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The training net's definition with its state set. Throws InvalidArgument unless exactly one of
// the four fields is given.
NetParameter TrainNetDefinition(const SolverParameter& param);

// One definition for each test net, each with its state set. Throws InvalidArgument when the
// numbers of nets, test_iter and test_state do not agree.
std::vector<NetParameter> TestNetDefinitions(const SolverParameter& param);

}  // namespace caffe
