// The transform's inner loops, compiled for several instruction sets; one is selected at program
// start.
#pragma once

#include <cstdint>

#include "caffe/dtype.hpp"

namespace caffe::data {

// The transform of one row of one channel: y = (x - mean) * scale.
struct RowTransform {
  const float* mean_row = nullptr;  // one mean per number of y; if null,
  float mean_value = 0;             // a single mean
  float scale = 1;
  bool mirror = false;  // y is written from right to left
};

void TransformRow(const RowTransform& transform, const uint8_t* x, int count, float* y);
void TransformRow(const RowTransform& transform, const float* x, int count, float* y);

// Splits `count` pixels of three interleaved channels.
void SplitThreeChannels(const uint8_t* x, int count, uint8_t* first, uint8_t* second,
                        uint8_t* third);

// The reverse: pixel i of y, at a distance of `stride` numbers, begins with rows[0][i], ...,
// rows[num_rows - 1][i].
void InterleaveRows(const float* const* rows, int num_rows, int count, int stride, float* y);

// Copies `count` pixels of `channels` interleaved numbers each, in reverse order.
void ReversePixels(const uint8_t* x, int count, int channels, uint8_t* y);

// Converts `count` numbers to that type.
void ConvertFloats(const float* x, int64_t count, DType dtype, void* y);

}  // namespace caffe::data
