// Divides a directly computed convolution into tasks.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/kernels/weight_panels.hpp"
#include "caffe/ops/conv.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {

// Copies pixels of `from_bytes` each, at least one, to places of `to_bytes`, which end with zeros.
inline void SpacePixels(const char* from, int64_t count, int64_t from_bytes, int64_t to_bytes,
                        char* to) {
  int64_t done = 0;
  const auto copy_words = [&]<typename Word>(Word) {
    const Word mask = static_cast<Word>(~Word{0}) >> 8 * (to_bytes - from_bytes);
    for (; (count - done) * from_bytes >= to_bytes; ++done) {
      Word pixel;
      std::memcpy(&pixel, from + done * from_bytes, sizeof(pixel));
      pixel &= mask;
      std::memcpy(to + done * to_bytes, &pixel, sizeof(pixel));
    }
  };
  if (to_bytes == sizeof(uint64_t)) copy_words(uint64_t{});  // three channels of 16 bits
  if (to_bytes == sizeof(uint32_t)) copy_words(uint32_t{});
  for (; done < count; ++done) {
    std::memcpy(to + done * to_bytes, from + done * from_bytes, static_cast<size_t>(from_bytes));
    std::memset(to + done * to_bytes + from_bytes, 0, static_cast<size_t>(to_bytes - from_bytes));
  }
}

// Sizes of the operands of a convolution of channels-last images without groups, in numbers of
// pixels and, where the name says so, bytes.
struct ConvSizes {
  int64_t channels, outputs, height, width, rows, columns;
  int64_t whole, offset;  // channels of a pixel of y, and offset of the results in them
  int64_t stride_y, stride_x, pad_y, pad_x, gap_y, gap_x, taps_y, taps_x;
  int64_t number_bytes;
  int64_t image_pixel_bytes;  // of a pixel of x
  int64_t pixel_bytes;        // of a pixel where the kernel reads it
  int64_t items, threads, blocks;
  bool is_signed;          // 8-bit numbers
  bool is_flat = false;    // windows are pixels; each is read once
  bool is_padded = false;  // some windows reach beyond the image

  // The results are y's channels from `first` on.
  ConvSizes(const ops::ConvGeometry& g, const TensorDesc& x, const TensorDesc& w, const Shape& y,
            int64_t first)
      : channels(x.shape[1]),
        outputs(w.shape[0]),
        height(x.shape[2]),
        width(x.shape[3]),
        rows(y[2]),
        columns(y[3]),
        whole(y[1]),
        offset(first),
        stride_y(g.stride[0]),
        stride_x(g.stride[1]),
        pad_y(g.pad[0]),
        pad_x(g.pad[1]),
        gap_y(g.dilation[0]),
        gap_x(g.dilation[1]),
        taps_y(g.kernel[0]),
        taps_x(g.kernel[1]),
        number_bytes(static_cast<int64_t>(SizeOf(x.dtype))),
        image_pixel_bytes(channels * number_bytes),
        pixel_bytes(image_pixel_bytes),
        items(x.shape[0]),
        threads(omp_get_max_threads()),
        blocks(BlocksOf(outputs)),
        is_signed(x.dtype == DType::kInt8) {
    is_padded = pad_y > 0 || pad_x > 0 || RowsOf(rows) > height || window_width() > width;
    is_flat = AreAll(g.kernel, 1) && AreAll(g.stride, 1) && !is_padded;
  }

  // Results over all images.
  int64_t pixels() const { return items * rows * columns; }
  // Number of image rows that `results` rows of results read.
  int64_t RowsOf(int64_t results) const {
    return (results - 1) * stride_y + (taps_y - 1) * gap_y + 1;
  }
  int64_t window_width() const { return (columns - 1) * stride_x + (taps_x - 1) * gap_x + 1; }
  int64_t item_bytes() const { return height * width * image_pixel_bytes; }

  // Without dilation, the taps of a row are contiguous.
  int64_t runs_of_row() const { return gap_x == 1 || taps_x == 1 ? 1 : taps_x; }
  int64_t runs() const { return taps_y * runs_of_row(); }

  // The least number of parts, from `parts` up to `most`, so that parts * others tasks divide
  // evenly among threads.
  int64_t EqualParts(int64_t parts, int64_t others, int64_t most) const {
    if (parts * others >= 8 * threads) return parts;
    const int64_t step = threads / std::gcd(threads, others);
    return std::min((parts + step - 1) / step * step, most);
  }
};

// Copies rows of an image from `first_row` on, each with the padding that windows read. Copies of
// pixels end with zeros if they have more bytes.
inline void CopyPaddedRows(const ConvSizes& s, const char* item, int64_t first_row, int64_t count,
                           char* to) {
  const int64_t row_bytes = s.window_width() * s.pixel_bytes;
  const int64_t inside = std::min(s.width, s.window_width() - s.pad_x);
  for (int64_t i = 0; i < count; ++i, to += row_bytes) {
    const int64_t row = first_row + i;
    if (row < 0 || row >= s.height || inside <= 0) {
      std::memset(to, 0, static_cast<size_t>(row_bytes));
      continue;
    }
    const char* const from = item + row * s.width * s.image_pixel_bytes;
    const int64_t left = s.pad_x * s.pixel_bytes, end = left + inside * s.pixel_bytes;
    std::memset(to, 0, static_cast<size_t>(left));
    if (s.pixel_bytes == s.image_pixel_bytes) {
      std::memcpy(to + left, from, static_cast<size_t>(inside * s.pixel_bytes));
    } else {
      SpacePixels(from, inside, s.image_pixel_bytes, s.pixel_bytes, to + left);
    }
    std::memset(to + end, 0, static_cast<size_t>(row_bytes - end));
  }
}

// Sizes of operands and tasks. A chunk is some rows of an image, or, for 1x1 windows, some pixels
// of all images. A task is a block of channels of a chunk.
struct DirectSizes : ConvSizes {
  int64_t chunks_of_item = 1, chunks = 1;
  int64_t chunk_rows = 0;  // maximum, in rows of the image

  DirectSizes(const ops::Conv& op, const TensorDesc& x, const TensorDesc& w, const Shape& y,
              int64_t first = 0)
      : ConvSizes(op.geometry, x, w, y, first) {
    if (is_flat) {
      const int64_t in_chunk = std::max(kTilesOfChunk, kChunkBytes / (kPixels * pixel_bytes));
      chunks = EqualParts((tiles() + in_chunk - 1) / in_chunk, blocks, tiles());
      return;
    }
    int64_t in_chunk = rows;
    while (in_chunk > 1 && RowsOf(in_chunk) * row_bytes() > kChunkBytes) --in_chunk;
    chunks_of_item = EqualParts((rows + in_chunk - 1) / in_chunk, items * blocks, rows);
    chunks = items * chunks_of_item;
    chunk_rows = RowsOf((rows + chunks_of_item - 1) / chunks_of_item);
  }

  int64_t tiles() const { return (pixels() + kPixels - 1) / kPixels; }
  int64_t tasks() const { return chunks * blocks; }
  // Bytes of a row of the image, or of its padded copy.
  int64_t row_bytes() const { return (is_padded ? window_width() : width) * pixel_bytes; }
  size_t copy_bytes() const {
    return is_padded ? static_cast<size_t>(chunk_rows * row_bytes()) : 0;
  }
  int64_t run_bytes() const { return taps_x / runs_of_row() * pixel_bytes; }

  WeightPanels panels() const {
    return {outputs, channels, taps_y * taps_x, number_bytes, 0, is_signed};
  }

 private:
  // Bytes of an image that are read repeatedly, for each block of channels: they stay in the
  // second-level cache together with a block's weights.
  static constexpr int64_t kChunkBytes = 160 << 10;
  static constexpr int64_t kTilesOfChunk = 4;  // minimum, to amortize reading the weights
};

}  // namespace caffe::cpu
#endif
