// Which nets a solver trains and tests: the many ways in which a solver file can name them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Exactly one of net, net_param, train_net, train_net_param. Throws InvalidArgument otherwise.
std::unique_ptr<Net> MakeTrainNet(const SolverParameter& param, const NetOptions& options);

// test_net_param, then test_net, then the generic net for each remaining test_iter, with phase TEST
// and the test_state merged in. Throws InvalidArgument when counts do not fit.
std::vector<NetParameter> TestNetDefinitions(const SolverParameter& param);

// A comma-separated list of weight files, blanks around names ignored.
void LoadWeights(const std::string& list, Net* net);

}  // namespace caffe
