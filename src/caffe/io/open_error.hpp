// The error about a file that cannot be opened.
#pragma once

#include <string>

#include "caffe/error.hpp"
#include "caffe/export.hpp"

namespace caffe {

// Names the path and the reason for `error`, an errno. Where the file does not exist and one with a
// similar name is beside it, the text asks if that was meant.
CAFFE_EXPORT IoError OpenError(const std::string& path, int error);

}  // namespace caffe
