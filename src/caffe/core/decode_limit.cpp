#include "caffe/decode_limit.hpp"

#include <algorithm>
#include <atomic>

namespace caffe {
namespace {

// Decoding makes photographs about 10 times larger, and packed arrays a few times.
constexpr uint64_t kOrdinaryGrowth = 16;

std::atomic<int64_t> max_decoded_mib{1024};

}  // namespace

void SetMaxDecodedMb(int64_t mib) {
  Require(0 < mib && mib < int64_t{1} << 40, "max_decoded_mb is ", mib,
          "; give a positive number of MiB");
  max_decoded_mib = mib;
}

int64_t MaxDecodedMb() {
  return max_decoded_mib;
}

uint64_t MostDecodedBytes(uint64_t file_bytes) {
  return std::max(static_cast<uint64_t>(MaxDecodedMb()) << 20, file_bytes * kOrdinaryGrowth);
}

}  // namespace caffe
