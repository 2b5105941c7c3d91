// Splits lists in flags and environment variables, and joins names for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// The parts between commas, without spaces and tabs around them; empty parts are dropped.
CAFFE_EXPORT std::vector<std::string> SplitByComma(std::string_view text);

// The same for paths of files, whose names may contain commas and begin with spaces: where several
// parts together are the path of a file, they are one path.
CAFFE_EXPORT std::vector<std::string> SplitPaths(std::string_view text);

// "conv1, conv2".
CAFFE_EXPORT std::string JoinByComma(const std::vector<std::string>& names);

}  // namespace caffe
