// Stored weights of products in 8 bits: for each output channel its largest magnitude, then the
// numbers that kernels compute from its floats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "caffe/export.hpp"

namespace caffe::runtime {

// Layout of the floats: `channels` rows one after another, or columns side by side.
struct WeightRows {
  int64_t channels = 1;
  bool are_columns = false;
  bool operator==(const WeightRows&) const = default;
};

// Stored bytes of `count` floats; `count` is a multiple of the channels.
inline size_t NumberBytes(const WeightRows& rows, int64_t count) {
  return static_cast<size_t>(rows.channels) * sizeof(float) + static_cast<size_t>(count);
}
CAFFE_EXPORT void EncodeWeights(const WeightRows& rows, const float* weights, int64_t count,
                                void* numbers);
// Decodes floats from which kernels compute the same numbers and scales as from the encoded ones.
// Writes exactly `count` floats, whatever the bytes are.
CAFFE_EXPORT void DecodeWeights(const WeightRows& rows, const void* numbers, int64_t count,
                                float* weights);

}  // namespace caffe::runtime
