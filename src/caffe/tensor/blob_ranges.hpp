// Ranges of a net's blobs, measured by `caffe calibrate`.
#pragma once

#include <map>
#include <string>

namespace caffe {

struct BlobRanges {
  // lowest <= 0 <= highest. Values outside the range are clipped.
  struct Range {
    float lowest = 0, highest = 0;
    bool operator==(const Range&) const = default;
  };

  std::string file;  // source of the ranges, for messages
  std::string net;   // name of the net that was measured
  std::map<std::string, Range> blobs;
};

}  // namespace caffe
