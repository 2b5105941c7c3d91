// SolverParameter.param_group: rates and decays of parameters by their names.
#pragma once

#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Factors of a parameter's lr_mult and decay_mult.
struct ParamFactors {
  double lr_mult = 1, decay_mult = 1;
};

// True if the pattern matches the whole name: * is any number of characters, ? is one character.
bool MatchesPattern(const std::string& pattern, const std::string& name);

// Returns one entry for each of the net's learnable parameters; empty if the solver has no groups.
// With `logs`, logs the parameters of each group. Throws InvalidArgument for a group without names,
// factors that are not finite, and a pattern that matches no parameter.
std::vector<ParamFactors> FactorsOfGroups(const SolverParameter& param, const Net& net, bool logs);

}  // namespace caffe
