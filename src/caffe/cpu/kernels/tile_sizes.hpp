// Divides a convolution by products of tiles into tasks.
#pragma once

#include <algorithm>

#include "caffe/cpu/kernels/direct_sizes.hpp"
#include "caffe/cpu/kernels/tile_products.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {

// Lines are rows of results or, for 1x1 windows, all results as one line. A line is cut into tiles
// of equal length; its last one may begin with results of the one before. A chunk is some lines of
// an image, some images or, for 1x1 windows, some tiles. A task is a group of blocks of channels of
// a chunk.
struct TileSizes : ConvSizes {
  bool is_copied;         // rows are copied with their padding
  bool is_weights_last;   // all weights stay in the second-level cache
  int64_t lines, length;  // lines of all images, and results of a line
  TileCut cut;            // of lines
  int64_t chunks = 1, chunks_of_item = 1, groups = 1;

  // The results are y's channels from `first` on.
  TileSizes(const ops::ConvGeometry& g, const TensorDesc& x, const TensorDesc& w, const Shape& y,
            int64_t first)
      : TileSizes(InUnits(ConvSizes(g, x, w, y, first))) {}

  int64_t row_units() const { return taps_x / runs_of_row() * pixel_bytes / kUnitBytes; }
  // Bytes of a row of the image, or of its copy.
  int64_t row_bytes() const {
    return is_copied ? window_width() * pixel_bytes : width * image_pixel_bytes;
  }
  // Bytes from image to image, or from copy to copy.
  int64_t item_step() const {
    if (!is_copied) return item_bytes();
    return RowsOf((rows + chunks_of_item - 1) / chunks_of_item) * row_bytes();
  }
  int64_t copy_bytes() const { return is_copied ? items_of_chunk() * item_step() : 0; }
  int64_t tasks() const { return chunks * groups; }
  // The first tile of a chunk.
  int64_t FirstTile(int64_t chunk) const {
    if (is_flat) {
      if (chunk == chunks) return cut.tiles;
      return cut.tiles * chunk / chunks / kTileGroup * kTileGroup;
    }
    const int64_t item = items * chunk / chunks;
    return (item * rows + rows * (chunk % chunks_of_item) / chunks_of_item) * cut.tiles;
  }

  WeightPanels panels() const {
    const int64_t padding = pixel_bytes / number_bytes - channels;
    return {outputs, channels, taps_y * taps_x, number_bytes, padding};
  }

 private:
  // Weights of up to this size stay in the second-level cache.
  static constexpr int64_t kKeptBytes = 768 << 10;
  // Bytes of pixels that are read again for each block of channels.
  static constexpr int64_t kChunkBytes = 512 << 10;
  static constexpr int64_t kCopiedBytes = 128 << 10;

  // With pixels that are whole units where the kernel reads them.
  static ConvSizes InUnits(ConvSizes sizes) {
    sizes.pixel_bytes = (sizes.pixel_bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
    sizes.is_flat = sizes.is_flat && sizes.pixel_bytes == sizes.image_pixel_bytes;
    return sizes;
  }
  explicit TileSizes(const ConvSizes& sizes)
      : ConvSizes(sizes),
        is_copied(is_padded || pixel_bytes != image_pixel_bytes),
        lines(is_flat ? 1 : items * rows),
        length(is_flat ? pixels() : columns),
        cut(length, row_units()) {
    is_weights_last = panels().bytes() <= kKeptBytes;
    // Threads share whichever takes more memory: images or weights.
    if (panels().bytes() > items * item_bytes()) groups = std::min(threads, blocks);
    is_flat ? DivideTiles() : DivideLines();
  }

  void DivideTiles() {
    int64_t in_chunk = kTileGroup;
    if (!is_weights_last)
      in_chunk = std::max<int64_t>(in_chunk, kChunkBytes / (cut.rows * pixel_bytes));
    chunks = EqualParts((cut.tiles + in_chunk - 1) / in_chunk, groups, cut.tiles);
  }
  void DivideLines() {
    const int64_t bytes = RowsOf(rows) * row_bytes();
    if (!is_weights_last && 2 * bytes <= kChunkBytes) {
      chunks = (items + kChunkBytes / bytes - 1) / (kChunkBytes / bytes);
      chunks = EqualParts(chunks, groups, items);
      return;
    }
    const int64_t most = is_weights_last ? kCopiedBytes : kChunkBytes;
    int64_t in_chunk = rows;
    while (in_chunk > 1 && RowsOf(in_chunk) * row_bytes() > most) --in_chunk;
    chunks_of_item = EqualParts((rows + in_chunk - 1) / in_chunk, items * groups, rows);
    chunks = items * chunks_of_item;
  }
  // The most.
  int64_t items_of_chunk() const { return (items + chunks - 1) / chunks; }
};

}  // namespace caffe::cpu
#endif
