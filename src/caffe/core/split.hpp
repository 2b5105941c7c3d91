// Splits lists in flags and environment variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// The parts between commas, without spaces and tabs around them; empty parts are dropped.
CAFFE_EXPORT std::vector<std::string> SplitByComma(std::string_view text);

}  // namespace caffe
