// Who has started this process as one of several, as environment variables tell.
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

// The first host of Slurm's list: "gpu03" of "gpu[03-07,11],login1". Throws InvalidArgument for
// what is no such list.
std::string FirstHost(const std::string& list);

}  // namespace caffe
