// Downloads files.
#pragma once

#include <string>
#include <vector>

namespace caffe::tools {

// The expected checksum: 40 lower-case hexadecimal digits.
struct Checksum {
  enum Kind {
    SHA1,      // of the file's bytes
    GIT_BLOB,  // git's object name of the file, as listings of repositories show it
  };
  Kind kind = SHA1;
  std::string digits;

  const char* name() const { return kind == SHA1 ? "SHA-1" : "git blob"; }
};

// Downloads the file to `path` from the first address that answers, by way of `<path>.part`. An
// interrupted download resumes if the server supports it. The file gets its final name only after
// its checksum matches. A file that already exists is only checked. Returns true if anything was
// downloaded. Throws IoError if anything fails, Unsupported in a build without libcurl.
bool FetchFile(const std::vector<std::string>& urls, const Checksum& wanted,
               const std::string& path);

}  // namespace caffe::tools
