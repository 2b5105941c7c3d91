// Weights of products in 8 bits, as files keep them: for each output channel its largest magnitude,
// and the numbers that kernels make of its floats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "caffe/export.hpp"

namespace caffe::runtime {

// How the floats lie: `channels` rows one after another, or columns side by side.
struct WeightRows {
  int64_t channels = 1;
  bool are_columns = false;
  bool operator==(const WeightRows&) const = default;
};

// Of `count` floats, a whole multiple of the channels.
inline size_t NumberBytes(const WeightRows& rows, int64_t count) {
  return static_cast<size_t>(rows.channels) * sizeof(float) + static_cast<size_t>(count);
}
CAFFE_EXPORT void EncodeWeights(const WeightRows& rows, const float* weights, int64_t count,
                                void* numbers);
// Floats of which kernels make the same numbers and scales as of those that were encoded. Whatever
// the bytes are, it writes `count` floats.
CAFFE_EXPORT void DecodeWeights(const WeightRows& rows, const void* numbers, int64_t count,
                                float* weights);

}  // namespace caffe::runtime
