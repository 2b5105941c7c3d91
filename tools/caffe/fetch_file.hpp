// Files from the network.
#pragma once

#include <string>
#include <vector>

namespace caffe::tools {

// What a file has to be: 40 lower-case hexadecimal digits.
struct Checksum {
  enum Kind {
    SHA1,      // of the bytes
    GIT_BLOB,  // the name that git gives to a file, as a listing of a repository shows it
  };
  Kind kind = SHA1;
  std::string digits;

  const char* name() const { return kind == SHA1 ? "SHA-1" : "git blob"; }
};

// Downloads the file to `path`, by way of `<path>.part`, from the first of the addresses that
// answers. A download that was cut off goes on where it stopped, if the server can; the file has
// its name once its checksum is right. A file that is there already is only checked; returns
// whether anything was downloaded. Throws IoError for whatever goes wrong, Unsupported in a build
// without libcurl.
bool FetchFile(const std::vector<std::string>& urls, const Checksum& wanted,
               const std::string& path);

}  // namespace caffe::tools
