// Refusals of kernels, for people.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// Of "kernel: reason" each: kernels with one reason become "kernel, kernel: reason", in the place
// of the first. A type, for example, is a reason for many.
CAFFE_EXPORT std::vector<std::string> JoinRefusals(const std::vector<std::string>& refusals);

}  // namespace caffe
