// The locations of the sources and of this build.
#pragma once

#include <string>

namespace caffe::testing {

// The absolute path of a file or folder, given relative to the root of the sources, as in
// SourcePath("models/lenet.prototxt"), or to the build's, as in BuildPath("bin/caffe").
std::string SourcePath(const std::string& name);
std::string BuildPath(const std::string& name);

}  // namespace caffe::testing
