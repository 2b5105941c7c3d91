#include "tests/support/folders.hpp"

namespace caffe::testing {

// Only this file is compiled with the paths, so ccache can reuse the others for every clone.
std::string SourcePath(const std::string& name) {
  return CAFFE_SOURCE_DIR "/" + name;
}
std::string BuildPath(const std::string& name) {
  return CAFFE_BINARY_DIR "/" + name;
}

}  // namespace caffe::testing
