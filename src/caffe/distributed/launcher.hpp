// Which launcher has started this process as one of several, according to environment variables.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "caffe/ranks.hpp"

namespace caffe {

// A variable's value, null where it is not set.
using Environment = std::function<const char*(const char* name)>;

// RanksFromEnvironment() of this environment.
std::optional<RankOptions> RanksFrom(const Environment& environment);

}  // namespace caffe
