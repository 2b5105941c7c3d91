// What tells whether a file has the bytes that it had when somebody wrote down its mark.
#pragma once

#include <cstdint>
#include <string>

namespace caffe {

// Two files with one mark have the same bytes, unless somebody has made them alike on purpose.
struct ContentMark {
  uint64_t bytes = 0;
  uint64_t hash = 0;

  bool operator==(const ContentMark&) const = default;
};

// Of all bytes of an open file, wherever its position is. Throws IoError, which names `path`.
ContentMark MarkOf(int descriptor, const std::string& path);
ContentMark MarkOfFile(const std::string& path);
// The same of a file of up to 64 MiB; of a larger one the hash is that of its beginning, its end
// and blocks between them.
ContentMark SampledMarkOfFile(const std::string& path);

}  // namespace caffe
