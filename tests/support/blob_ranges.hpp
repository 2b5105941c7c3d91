// Files of ranges, as caffe calibrate writes them.
#pragma once

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "caffe/net.hpp"

namespace caffe::testing {

// The lowest and highest value of each blob; 0 is between them.
using Ranges = std::map<std::string, std::pair<float, float>>;

// The ranges of the blobs' current values.
inline Ranges RangesOf(const Net& net) {
  Ranges ranges;
  for (const std::string& name : net.blob_names()) {
    const Blob& blob = *net.blob_by_name(name);
    const auto [low, high] = std::minmax_element(blob.cpu_data(), blob.cpu_data() + blob.count());
    ranges[name] = {std::min(*low, 0.0F), std::max(*high, 0.0F)};
  }
  return ranges;
}

inline void WriteRanges(const std::string& net, const Ranges& ranges, const std::string& path) {
  std::ofstream file(path);
  file << R"({"format": "cortado calibration 1", "net": ")" << net << R"(", "ranges": {)";
  const char* comma = "";
  for (const auto& [blob, range] : ranges) {
    file << comma << '"' << blob << "\": [" << range.first << ", " << range.second << "]";
    comma = ", ";
  }
  file << "}}";
}

}  // namespace caffe::testing
