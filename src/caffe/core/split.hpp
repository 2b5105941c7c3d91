// Lists in one string, as flags and environment variables give them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// The parts between commas, without the spaces and tabs around them; empty parts are left out.
CAFFE_EXPORT std::vector<std::string> SplitByComma(std::string_view text);

}  // namespace caffe
