// The error about a file that cannot be opened.
#pragma once

#include <string>

#include "caffe/error.hpp"
#include "caffe/export.hpp"

namespace caffe {

// Names the path and the reason for `error`, an errno. Where the file does not exist and a
// file with a similar name is in its folder, the text asks if that one was meant.
CAFFE_EXPORT IoError OpenError(const std::string& path, int error);

}  // namespace caffe
