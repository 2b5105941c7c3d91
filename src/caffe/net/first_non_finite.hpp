// Where the first NaN or infinity of a net came from.
#pragma once

#include <string>

#include "caffe/net/active_plan.hpp"

namespace caffe {

// For error messages: names a parameter, or makes the pass `random` again, on the same batch, and
// names the first layer and blob. `why_parameter` follows where it is a parameter. Empty when all
// is finite.
std::string DescribeFirstNonFinite(const NetSource& source, const NetParams& params,
                                   ActivePlan& plan, const RandomState& random,
                                   const std::string& why_parameter);

}  // namespace caffe
