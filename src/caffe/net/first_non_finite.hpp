// Where the first NaN or infinity of a net came from.
#pragma once

#include <functional>
#include <string>

#include "caffe/net/active_plan.hpp"
#include "caffe/plan/executor.hpp"

namespace caffe {

// For error messages: names a parameter, or makes the pass `run` again, on the same batch, and
// names the first layer and blob. A run of both directions looks at gradients, too, and overwrites
// those of the parameters. `why_parameter` follows where it is a parameter. Empty when all is
// finite.
std::string DescribeFirstNonFinite(const NetSource& source, const NetParams& params,
                                   ActivePlan& plan, Executor::RunOptions run,
                                   const std::string& why_parameter);

// The first part of it: names the first parameter for which `is_asked` holds. Runs nothing.
std::string DescribeNonFiniteParameter(
    const NetParams& params, Device& device,
    const std::function<bool(const Net::LearnableParam&)>& is_asked,
    const std::string& why_parameter);

}  // namespace caffe
