// Divides a directly computed convolution into tasks.
#pragma once

#include <omp.h>

#include <algorithm>
#include <numeric>

#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/kernels/weight_panels.hpp"
#include "caffe/ops/conv.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {

// Sizes of operands and tasks. A chunk is some rows of an image, or, for 1x1 windows, some pixels
// of all images. A task is a block of channels of a chunk.
struct DirectSizes {
  int64_t channels, outputs, height, width, rows, columns;
  int64_t whole, offset;  // channels of a pixel of y, and offset of the results in them
  int64_t stride_y, stride_x, pad_y, pad_x, gap_y, gap_x, taps_y, taps_x;
  int64_t pixel_bytes, items, threads, blocks;
  bool is_flat = false;    // windows are pixels; each is read once
  bool is_padded = false;  // some windows reach beyond the image
  int64_t chunks_of_item = 1, chunks = 1;
  int64_t chunk_rows = 0;  // maximum, in rows of the image

  // The results are y's channels from `first` on.
  DirectSizes(const ops::Conv& op, const TensorDesc& x, const TensorDesc& w, const Shape& y,
              int64_t first = 0)
      : DirectSizes(op.geometry, x, w, y, first) {}
  DirectSizes(const ops::ConvGeometry& g, const TensorDesc& x, const TensorDesc& w, const Shape& y,
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
        pixel_bytes(channels * static_cast<int64_t>(SizeOf(x.dtype))),
        items(x.shape[0]),
        threads(omp_get_max_threads()),
        blocks(BlocksOf(outputs)) {
    is_padded = pad_y > 0 || pad_x > 0 || RowsOf(rows) > height || window_width() > width;
    is_flat = AreAll(g.kernel, 1) && AreAll(g.stride, 1) && !is_padded;
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

  // Results of a flat convolution, over all images.
  int64_t pixels() const { return items * rows * columns; }
  int64_t tiles() const { return (pixels() + kPixels - 1) / kPixels; }
  int64_t tasks() const { return chunks * blocks; }
  // Number of image rows that `results` rows of results read.
  int64_t RowsOf(int64_t results) const {
    return (results - 1) * stride_y + (taps_y - 1) * gap_y + 1;
  }
  int64_t window_width() const { return (columns - 1) * stride_x + (taps_x - 1) * gap_x + 1; }
  // Bytes of a row of the image, or of its padded copy.
  int64_t row_bytes() const { return (is_padded ? window_width() : width) * pixel_bytes; }
  int64_t item_bytes() const { return height * width * pixel_bytes; }
  size_t copy_bytes() const {
    return is_padded ? static_cast<size_t>(chunk_rows * row_bytes()) : 0;
  }

  // Without dilation, the taps of a row are contiguous.
  int64_t runs_of_row() const { return gap_x == 1 || taps_x == 1 ? 1 : taps_x; }
  int64_t runs() const { return taps_y * runs_of_row(); }
  int64_t run_bytes() const { return taps_x / runs_of_row() * pixel_bytes; }

  WeightPanels panels() const {
    return {outputs, channels, taps_y * taps_x, pixel_bytes / channels};
  }

 private:
  // Bytes of an image that are read repeatedly, for each block of channels: they stay in the
  // second-level cache together with a block's weights.
  static constexpr int64_t kChunkBytes = 160 << 10;
  static constexpr int64_t kTilesOfChunk = 4;  // minimum, to amortize reading the weights

  // Increases `parts` so that parts * others tasks divide evenly among threads, if possible.
  int64_t EqualParts(int64_t parts, int64_t others, int64_t most) const {
    if (parts * others >= 8 * threads) return parts;
    const int64_t step = threads / std::gcd(threads, others);
    return std::min((parts + step - 1) / step * step, most);
  }
};

}  // namespace caffe::cpu
#endif
