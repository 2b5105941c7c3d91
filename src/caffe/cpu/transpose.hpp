// Images from Caffe's layout to channels-last and back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "caffe/core/cpu_clones.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// y[c * y_step + r] = convert(x[r * x_step + c]), in blocks that stay in the first-level cache.
template <typename From, typename To, typename Convert>
CAFFE_CPU_CLONES void TransposeBlocks(const From* x, int64_t x_step, int64_t rows, int64_t columns,
                                      Convert convert, To* y, int64_t y_step) {
  constexpr int64_t kBlock = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      const int64_t r1 = std::min(r0 + kBlock, rows), c1 = std::min(c0 + kBlock, columns);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) y[c * y_step + r] = convert(x[r * x_step + c]);
      }
    }
  }
}

// The same for so few rows that all of one column's are written at once.
template <int kRows, typename From, typename To, typename Convert>
CAFFE_CPU_CLONES void InterleaveRows(const From* x, int64_t x_step, int64_t columns,
                                     Convert convert, To* y) {
  constexpr int64_t kColumns = 256;
  To converted[kRows][kColumns];
  for (int64_t begin = 0; begin < columns; begin += kColumns) {
    const int64_t count = std::min(kColumns, columns - begin);
    for (int r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < count; ++c) converted[r][c] = convert(x[r * x_step + begin + c]);
    }
    for (int64_t c = 0; c < count; ++c) {
      for (int r = 0; r < kRows; ++r) y[(begin + c) * kRows + r] = converted[r][c];
    }
  }
}

template <typename From, typename To, typename Convert>
void TransposeRows(const From* x, int64_t x_step, int64_t rows, int64_t columns, Convert convert,
                   To* y, int64_t y_step) {
  if (rows == y_step && rows == 3) return InterleaveRows<3>(x, x_step, columns, convert, y);
  if (rows == y_step && rows == 4) return InterleaveRows<4>(x, x_step, columns, convert, y);
  TransposeBlocks(x, x_step, rows, columns, convert, y, y_step);
}

// y, of the other layout, has convert(x). Threads share the pixels of an image, too.
template <typename From, typename To, typename Convert>
void TransposeImages(const TensorView& x, const TensorView& y, Convert convert) {
  constexpr int64_t kPixels = 1024;  // that one thread takes at a time
  const int64_t channels = x.shape[1], pixels = x.shape.count(2);
  const int64_t blocks = (pixels + kPixels - 1) / kPixels;
  const bool to_last = y.layout == Layout::kChannelsLast;
  ParallelFor(x.shape[0] * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kPixels, count = std::min(kPixels, pixels - first);
      const From* const from = x.as<const From>() + i / blocks * channels * pixels;
      To* const to = y.as<To>() + i / blocks * channels * pixels;
      if (to_last) {
        TransposeRows(from + first, pixels, channels, count, convert, to + first * channels,
                      channels);
      } else {
        TransposeRows(from + first * channels, channels, count, channels, convert, to + first,
                      pixels);
      }
    }
  });
}

}  // namespace caffe::cpu
