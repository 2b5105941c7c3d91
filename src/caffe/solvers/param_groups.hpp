// SolverParameter.param_group: rates and decays of parameters by their names.
#pragma once

#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// What lr_mult and decay_mult of a parameter are multiplied by.
struct ParamFactors {
  double lr_mult = 1, decay_mult = 1;
};

// Whether a whole name is as the pattern: * stands for any number of characters, ? for one.
bool MatchesPattern(const std::string& pattern, const std::string& name);

// One for each of the net's learnable parameters; empty where the solver has no groups. With
// `logs`, says which parameters each group has. Throws InvalidArgument for a group without names,
// factors that are not finite, and a name that no parameter has.
std::vector<ParamFactors> FactorsOfGroups(const SolverParameter& param, const Net& net, bool logs);

}  // namespace caffe
