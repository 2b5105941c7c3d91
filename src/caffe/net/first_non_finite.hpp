// Finds where the first NaN or infinity of a net came from.
#pragma once

#include <functional>
#include <string>

#include "caffe/net/active_plan.hpp"
#include "caffe/plan/executor.hpp"

namespace caffe {

// For error messages: names a non-finite parameter, or repeats the pass `run` on the same batch and
// names the first non-finite layer and blob. A run of both directions also examines gradients and
// overwrites those of the parameters. `why_parameter` is appended if it is a parameter. Empty if
// all values are finite.
std::string DescribeFirstNonFinite(const NetSource& source, const NetParams& params,
                                   ActivePlan& plan, Executor::RunOptions run,
                                   const std::string& why_parameter);

// Names the first non-finite parameter for which `is_asked` returns true. Runs nothing.
std::string DescribeNonFiniteParameter(
    const NetParams& params, Device& device,
    const std::function<bool(const Net::LearnableParam&)>& is_asked,
    const std::string& why_parameter);

}  // namespace caffe
