// Converts images from Caffe's layout to channels-last and back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "caffe/core/cpu_clones.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// A matrix with rows that are `step` elements apart.
template <typename T>
struct MatrixView {
  T* data;
  int64_t step, rows, columns;
};

// y[c * y_step + r] = x[r, c], in blocks that stay in the first-level cache. Whole blocks are
// written column by column: stores to 16 rows that are a power of two apart would share a few lines
// of the cache. E must be an unsigned integer, which stands for elements of its size: the code is
// large.
template <typename E>
CAFFE_CPU_CLONES void TransposeElements(const MatrixView<const E>& x, E* y, int64_t y_step) {
  constexpr int64_t kBlock = 16;
  for (int64_t r0 = 0; r0 < x.rows; r0 += kBlock) {
    const int64_t rows = std::min(kBlock, x.rows - r0);
    for (int64_t c0 = 0; c0 < x.columns; c0 += kBlock) {
      const int64_t columns = std::min(kBlock, x.columns - c0);
      const E* const from = x.data + r0 * x.step + c0;
      E* const to = y + c0 * y_step + r0;
      if (rows == kBlock) {
        for (int64_t c = 0; c < columns; ++c) {
          for (int64_t r = 0; r < kBlock; ++r) to[c * y_step + r] = from[r * x.step + c];
        }
      } else {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) to[c * y_step + r] = from[r * x.step + c];
        }
      }
    }
  }
}
// The same for three rows, the channels of a picture; y has no other channels.
template <typename E>
CAFFE_CPU_CLONES void InterleaveThree(const MatrixView<const E>& x, E* y) {
  for (int64_t c = 0; c < x.columns; ++c) {
    for (int64_t r = 0; r < 3; ++r) y[c * 3 + r] = x.data[r * x.step + c];
  }
}

template <typename T>
void Transpose(const MatrixView<const T>& x, T* y, int64_t y_step) {
  using E = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  const MatrixView<const E> bits{reinterpret_cast<const E*>(x.data), x.step, x.rows, x.columns};
  E* const to = reinterpret_cast<E*>(y);
  if (x.rows == 3 && y_step == 3) return InterleaveThree(bits, to);
  TransposeElements(bits, to, y_step);
}

// For the three channels of a picture: interleaves them before they are converted, because
// compilers interleave 4-byte words well and bytes badly.
template <typename From, typename To, typename Convert>
void InterleaveConverted(const MatrixView<const From>& x, const Convert& convert, To* y) {
  constexpr int64_t kColumns = 256;
  From block[3 * kColumns];
  for (int64_t c0 = 0; c0 < x.columns; c0 += kColumns) {
    const int64_t columns = std::min(kColumns, x.columns - c0);
    Transpose<From>({x.data + c0, x.step, 3, columns}, block, 3);
    convert(block, y + c0 * 3, columns * 3);
  }
}

// convert(from, to, count) converts a range. Other blocks are converted before transposing.
template <typename From, typename To, typename Convert>
void TransposeConverted(const MatrixView<const From>& x, const Convert& convert, To* y,
                        int64_t y_step) {
  if (sizeof(To) == 1 && x.rows == 3 && y_step == 3) return InterleaveConverted(x, convert, y);
  constexpr int64_t kRows = 16, kColumns = 256;
  To block[kRows * kColumns];
  for (int64_t r0 = 0; r0 < x.rows; r0 += kRows) {
    for (int64_t c0 = 0; c0 < x.columns; c0 += kColumns) {
      const int64_t rows = std::min(kRows, x.rows - r0);
      const int64_t columns = std::min(kColumns, x.columns - c0);
      const From* const from = x.data + r0 * x.step + c0;
      if (x.step == columns) {  // one range
        convert(from, block, rows * columns);
      } else {
        for (int64_t r = 0; r < rows; ++r) convert(from + r * x.step, block + r * columns, columns);
      }
      Transpose<To>({block, columns, rows, columns}, y + c0 * y_step + r0, y_step);
    }
  }
}

// y, of the other layout, is x converted: convert(from, to, count) does that for a range. It is not
// called if `is_copy`, for which both types must be equal. Threads also share the pixels of an
// image.
template <typename From, typename To, typename Convert>
void TransposeImages(const TensorView& x, const TensorView& y, bool is_copy,
                     const Convert& convert) {
  constexpr int64_t kPixels = 1024;  // number of pixels that one thread takes at a time
  const int64_t channels = x.shape[1], pixels = x.shape.count(2);
  const int64_t blocks = (pixels + kPixels - 1) / kPixels;
  const bool to_last = y.layout == Layout::kChannelsLast;
  ParallelFor(x.shape[0] * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kPixels, count = std::min(kPixels, pixels - first);
      const int64_t item = i / blocks * channels * pixels;
      MatrixView<const From> from{x.as<const From>() + item, pixels, channels, count};
      if (!to_last) from = {from.data, channels, count, channels};
      from.data += to_last ? first : first * channels;
      To* const to = y.as<To>() + item + (to_last ? first * channels : first);
      const int64_t to_step = to_last ? channels : pixels;
      if constexpr (std::is_same_v<From, To>) {
        if (is_copy) {
          Transpose<To>(from, to, to_step);
          continue;
        }
      }
      TransposeConverted(from, convert, to, to_step);
    }
  });
}

}  // namespace caffe::cpu
