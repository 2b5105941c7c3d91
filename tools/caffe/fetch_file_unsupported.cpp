// In place of fetch_file.cpp in a build without libcurl.
#include "caffe/error.hpp"
#include "tools/caffe/fetch_file.hpp"

namespace caffe::tools {

bool FetchFile(const std::string& url, const std::string&, const std::string& path) {
  throw Unsupported(
      "this build has no libcurl; install libcurl4-openssl-dev and build again, or "
      "download " +
      url + " to " + path);
}

}  // namespace caffe::tools
