// Where the sources and this build are.
#pragma once

#include <string>

namespace caffe::testing {

// The absolute path of a file or folder, which is named from the root of the sources, as in
// SourcePath("models/lenet.prototxt"), or from the build's, as in BuildPath("bin/caffe").
std::string SourcePath(const std::string& name);
std::string BuildPath(const std::string& name);

}  // namespace caffe::testing
