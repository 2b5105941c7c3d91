// Files from the network.
#pragma once

#include <string>

namespace caffe::tools {

// Downloads `url` to `path`, by way of `<path>.part`. A download that was cut off goes on where it
// stopped, if the server can; the file has its name once its SHA-1 is right. A file that is there
// already is only checked; returns whether anything was downloaded. Throws IoError for whatever
// goes wrong, Unsupported in a build without libcurl.
bool FetchFile(const std::string& url, const std::string& sha1, const std::string& path);

}  // namespace caffe::tools
