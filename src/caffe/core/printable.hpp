// Names from files, made fit for a log.
#pragma once

#include <string>
#include <string_view>

#include "caffe/export.hpp"

namespace caffe {

// `text` with its control characters as "\x1b", so that it can neither begin a line of its own nor
// steer a terminal; after 200 bytes it ends in "...".
CAFFE_EXPORT std::string Printable(std::string_view text);

}  // namespace caffe
