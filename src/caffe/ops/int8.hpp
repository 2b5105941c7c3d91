// What products of 8-bit numbers can hold.
#pragma once

#include <cstdint>

namespace caffe::ops {

// So many products of 255 and 127 fit a sum of 32 bits.
inline constexpr int64_t kMostSummands = 66311;

}  // namespace caffe::ops
