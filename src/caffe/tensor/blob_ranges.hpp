// Ranges of a net's blobs, as `caffe calibrate` has measured them.
#pragma once

#include <map>
#include <string>

namespace caffe {

struct BlobRanges {
  // lowest <= 0 <= highest. Numbers beyond them are clipped.
  struct Range {
    float lowest = 0, highest = 0;
    bool operator==(const Range&) const = default;
  };

  std::string file;  // where they are from, for messages
  std::string net;   // name of the net that was measured
  std::map<std::string, Range> blobs;
};

}  // namespace caffe
