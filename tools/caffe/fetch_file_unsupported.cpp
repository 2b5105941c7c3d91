// Replaces fetch_file.cpp in builds without libcurl.
#include "caffe/error.hpp"
#include "tools/caffe/fetch_file.hpp"

namespace caffe::tools {

bool FetchFile(const std::vector<std::string>& urls, const Checksum&, const std::string& path) {
  throw Unsupported(
      "this build has no libcurl; install libcurl4-openssl-dev and build again, or "
      "download " +
      urls.at(0) + " to " + path);
}

}  // namespace caffe::tools
