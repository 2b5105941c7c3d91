// Marks that tell whether a file's contents have changed since the mark was stored.
#pragma once

#include <cstdint>
#include <string>

#include "caffe/export.hpp"

namespace caffe {

// Files with equal marks have equal contents, unless somebody constructed a collision on purpose.
struct ContentMark {
  uint64_t bytes = 0;
  uint64_t hash = 0;

  bool operator==(const ContentMark&) const = default;
};

// The mark of all bytes of an open file, regardless of its position. Throws IoError naming `path`.
ContentMark MarkOf(int descriptor, const std::string& path);
CAFFE_EXPORT ContentMark MarkOfFile(const std::string& path);
// The same for a file of up to 64 MiB; for a larger one, hashes its beginning, its end and blocks
// in between.
ContentMark SampledMarkOfFile(const std::string& path);

}  // namespace caffe
