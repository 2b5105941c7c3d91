// Formats the reasons why kernels were refused.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// Takes texts "kernel: reason". Kernels with the same reason become "kernel, kernel: reason", at
// the position of the first. A dtype, for example, is a reason for many kernels.
CAFFE_EXPORT std::vector<std::string> JoinRefusals(const std::vector<std::string>& refusals);

}  // namespace caffe
