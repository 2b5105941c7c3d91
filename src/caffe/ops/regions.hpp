// Regions of interest: boxes of a feature map, each divided into a fixed number of cells (Girshick
// 2015, "Fast R-CNN"; He et al. 2017, "Mask R-CNN"; Dai et al. 2016, "R-FCN").
//
// `rois` are rows of (item, x1, y1, x2, y2) in pixels of the input image. Edges of regions are
// computed in float whatever the types are, as in the forks, so that cells do not depend on the
// net's precision. Kernels cannot throw: a region of an item that is not in the batch is NaN, a
// region with a non-finite box is empty, and neither has a gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "caffe/ops/each_element.hpp"

namespace caffe::ops {

// Sizes of a map x (items, channels, height, width) and of the cells y (regions, cell channels,
// rows, columns). Tensors have fewer than 2^31 elements.
struct RegionSizes {
  int regions = 0, items = 0, channels = 0, height = 0, width = 0;
  int cell_channels = 0, rows = 0, columns = 0;
  float scale = 1;  // pixels of the map per pixel of the image

  std::string Attributes() const { return StrCat(rows, "x", columns, " cells, scale ", scale); }
};

// Position of element i in a map or in the cells.
struct RegionPlace {
  int outer, channel, row, column;

  CAFFE_HOST_DEVICE inline RegionPlace(int64_t i, int channels, int rows, int columns) {
    int rest = static_cast<int>(i);
    column = rest % columns, rest /= columns;
    row = rest % rows, rest /= rows;
    channel = rest % channels;
    outer = rest / channels;
  }
};

// Base of the ops below. Operand 1 is `rois`.
struct RegionOp : RegionSizes {
  static constexpr OperandSet kExactInputs = {1, 2};

  explicit RegionOp(const RegionSizes& sizes) : RegionSizes(sizes) {}

  CAFFE_HOST_DEVICE inline RegionPlace MapPlace(int64_t i) const {
    return {i, channels, height, width};
  }
  CAFFE_HOST_DEVICE inline RegionPlace CellPlace(int64_t i) const {
    return {i, cell_channels, rows, columns};
  }
  CAFFE_HOST_DEVICE inline int64_t MapIndex(int item, int channel, int h, int w) const {
    return ((static_cast<int64_t>(item) * channels + channel) * height + h) * width + w;
  }
  CAFFE_HOST_DEVICE inline int64_t CellIndex(int region, int channel, int row, int column) const {
    return ((static_cast<int64_t>(region) * cell_channels + channel) * rows + row) * columns +
           column;
  }
  // A map without pixels must not be read, whatever the regions and winners are.
  CAFFE_HOST_DEVICE inline bool has_pixels() const { return height > 0 && width > 0; }
  // Item of a region; -1 if it is not in the batch.
  template <typename Rois>
  CAFFE_HOST_DEVICE inline int ItemOf(const Rois& rois, int region) const {
    const float item = static_cast<float>(rois[region * 5]);
    return item >= 0 && item < static_cast<float>(items) ? static_cast<int>(item) : -1;
  }
  // Coordinates x1, y1, x2, y2 are edges 0 to 3.
  template <typename Rois>
  CAFFE_HOST_DEVICE inline float Edge(const Rois& rois, int region, int edge) const {
    return static_cast<float>(rois[region * 5 + 1 + edge]);
  }
};

// Positions [begin, end) of an axis.
struct PixelRange {
  int begin, end;
  CAFFE_HOST_DEVICE inline bool contains(int at) const { return begin <= at && at < end; }
  CAFFE_HOST_DEVICE inline int size() const { return end > begin ? end - begin : 0; }
};

// `at` rounded down and clipped to [0, end]; 0 for NaN.
CAFFE_HOST_DEVICE inline int NearestPlace(float at, int end) {
  return !(at > 0) ? 0 : at < static_cast<float>(end) ? static_cast<int>(at) : end;
}

// True if both ends of a region's axis, and so its length, are finite.
CAFFE_HOST_DEVICE inline bool IsBounded(float first, float last) {
  const float length = last - first;
  return length - length == 0;  // neither infinite nor NaN
}

// One axis of a region whose cells are whole pixels. Cell c extends from c * size + part to (c + 1)
// * size + part, rounded outwards, then shifted by `whole` pixels.
struct PixelCells {
  float whole, part, size;
  int extent;

  // Fast R-CNN: edges are rounded to pixels, and the last pixel is included.
  CAFFE_HOST_DEVICE static inline PixelCells Rounded(float low, float high, float scale, int cells,
                                                     int extent) {
    const float first = std::round(low * scale), last = std::round(high * scale);
    if (!IsBounded(first, last)) return Empty();
    return {first, 0, std::max(last - first + 1, 1.0f) / static_cast<float>(cells), extent};
  }
  // R-FCN: edges are rounded in pixels of the image, not of the map.
  CAFFE_HOST_DEVICE static inline PixelCells Scaled(float low, float high, float scale, int cells,
                                                    int extent) {
    const float first = std::round(low) * scale, last = (std::round(high) + 1) * scale;
    if (!IsBounded(first, last)) return Empty();
    return {0, first, std::max(last - first, 0.1f) / static_cast<float>(cells), extent};
  }

  // The cells of a map without pixels.
  CAFFE_HOST_DEVICE static inline PixelCells Empty() { return {0, 0, 1, 0}; }

  CAFFE_HOST_DEVICE inline PixelRange Cell(int cell) const {
    const float at = static_cast<float>(cell);
    return {NearestPlace(std::floor(at * size + part) + whole, extent),
            NearestPlace(std::ceil((at + 1) * size + part) + whole, extent)};
  }
  // Cells that may hold a pixel; may include a few too many to allow for rounding.
  CAFFE_HOST_DEVICE inline PixelRange CellsAround(int pixel, int cells) const {
    const float at = (static_cast<float>(pixel) - whole - part) / size, reach = 1 / size;
    return {NearestPlace(std::floor(at) - 1, cells),
            NearestPlace(std::ceil(at + reach) + 1, cells)};
  }
};

// Rows and columns of a region in ROI pooling.
struct RoundedRegion : RegionOp {
  using RegionOp::RegionOp;

  template <typename Rois>
  CAFFE_HOST_DEVICE inline PixelCells RowsOf(const Rois& rois, int region) const {
    return PixelCells::Rounded(Edge(rois, region, 1), Edge(rois, region, 3), scale, rows, height);
  }
  template <typename Rois>
  CAFFE_HOST_DEVICE inline PixelCells ColumnsOf(const Rois& rois, int region) const {
    return PixelCells::Rounded(Edge(rois, region, 0), Edge(rois, region, 2), scale, columns, width);
  }
};

// (x, rois) -> (winner):  position h * width + w of each cell's largest element, the first one of
// equal ones; -1 for an empty cell.
struct RegionWinner : RoundedRegion {
  static constexpr std::string_view kName = "RegionWinner";
  static constexpr int kInputs = 2;
  using RoundedRegion::RoundedRegion;

  template <typename A, typename X, typename Rois>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& x, const Rois& rois) const {
    const RegionPlace cell = CellPlace(i);
    const int item = ItemOf(rois, cell.outer);
    if (item < 0) return A(-1);
    const PixelRange down = RowsOf(rois, cell.outer).Cell(cell.row);
    const PixelRange across = ColumnsOf(rois, cell.outer).Cell(cell.column);
    int winner = -1;
    A best = 0;
    for (int h = down.begin; h < down.end; ++h) {
      for (int w = across.begin; w < across.end; ++w) {
        const A value = x[MapIndex(item, cell.channel, h, w)];
        if (winner < 0 || value > best) best = value, winner = h * width + w;
      }
    }
    return static_cast<A>(winner);
  }
};

// (x, rois, winner) -> (y):  the winners' elements, 0 for an empty cell.
struct RegionMax : RoundedRegion {
  static constexpr std::string_view kName = "RegionMax";
  static constexpr int kInputs = 3;
  using RoundedRegion::RoundedRegion;

  template <typename A, typename X, typename Rois, typename Winner>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& x, const Rois& rois,
                                     const Winner& winner) const {
    const RegionPlace cell = CellPlace(i);
    const int item = ItemOf(rois, cell.outer);
    if (item < 0) return static_cast<A>(NAN);
    const int at = static_cast<int>(winner[i]);
    return at < 0 || !has_pixels() ? A(0) : A(x[MapIndex(item, cell.channel, 0, 0) + at]);
  }
};

// (dy, rois, winner) -> (dx)
struct RegionMaxGrad : RoundedRegion {
  static constexpr std::string_view kName = "RegionMaxGrad";
  static constexpr int kInputs = 3;
  using RoundedRegion::RoundedRegion;

  template <typename A, typename Dy, typename Rois, typename Winner>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Dy& dy, const Rois& rois,
                                     const Winner& winner) const {
    const RegionPlace at = MapPlace(i);
    const int pixel = at.row * width + at.column;
    A sum = 0;
    for (int region = 0; region < regions; ++region) {
      if (ItemOf(rois, region) != at.outer) continue;
      const PixelRange down = RowsOf(rois, region).CellsAround(at.row, rows);
      const PixelRange across = ColumnsOf(rois, region).CellsAround(at.column, columns);
      for (int row = down.begin; row < down.end; ++row) {
        for (int column = across.begin; column < across.end; ++column) {
          const int64_t cell = CellIndex(region, at.channel, row, column);
          if (static_cast<int>(winner[cell]) == pixel) sum += dy[cell];
        }
      }
    }
    return sum;
  }
};

// Rows and columns of a region in position-sensitive pooling. Cell (channel, row, column) averages
// channel (channel * rows + row) * columns + column of the map.
struct SensitiveRegion : RegionOp {
  using RegionOp::RegionOp;

  template <typename Rois>
  CAFFE_HOST_DEVICE inline PixelRange RowOf(const Rois& rois, int region, int row) const {
    return PixelCells::Scaled(Edge(rois, region, 1), Edge(rois, region, 3), scale, rows, height)
        .Cell(row);
  }
  template <typename Rois>
  CAFFE_HOST_DEVICE inline PixelRange ColumnOf(const Rois& rois, int region, int column) const {
    return PixelCells::Scaled(Edge(rois, region, 0), Edge(rois, region, 2), scale, columns, width)
        .Cell(column);
  }
};

// (x, rois) -> (y):  averages; 0 for an empty cell.
struct SensitiveRegionMean : SensitiveRegion {
  static constexpr std::string_view kName = "SensitiveRegionMean";
  static constexpr int kInputs = 2;
  using SensitiveRegion::SensitiveRegion;

  template <typename A, typename X, typename Rois>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& x, const Rois& rois) const {
    const RegionPlace cell = CellPlace(i);
    const int item = ItemOf(rois, cell.outer);
    if (item < 0) return static_cast<A>(NAN);
    const PixelRange down = RowOf(rois, cell.outer, cell.row);
    const PixelRange across = ColumnOf(rois, cell.outer, cell.column);
    const int channel = (cell.channel * rows + cell.row) * columns + cell.column;
    A sum = 0;
    for (int h = down.begin; h < down.end; ++h) {
      for (int w = across.begin; w < across.end; ++w) sum += x[MapIndex(item, channel, h, w)];
    }
    const int area = down.size() * across.size();
    return area == 0 ? A(0) : sum / static_cast<A>(area);
  }
};

// (dy, rois) -> (dx)
struct SensitiveRegionMeanGrad : SensitiveRegion {
  static constexpr std::string_view kName = "SensitiveRegionMeanGrad";
  static constexpr int kInputs = 2;
  using SensitiveRegion::SensitiveRegion;

  template <typename A, typename Dy, typename Rois>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Dy& dy, const Rois& rois) const {
    const RegionPlace at = MapPlace(i);
    const int column = at.channel % columns, row = at.channel / columns % rows;
    const int channel = at.channel / (rows * columns);
    A sum = 0;
    for (int region = 0; region < regions; ++region) {
      if (ItemOf(rois, region) != at.outer) continue;
      const PixelRange down = RowOf(rois, region, row), across = ColumnOf(rois, region, column);
      if (!down.contains(at.row) || !across.contains(at.column)) continue;
      sum +=
          dy[CellIndex(region, channel, row, column)] / static_cast<A>(down.size() * across.size());
    }
    return sum;
  }
};

// One axis of a region whose cells are sampled between pixels, at `samples` positions per cell.
struct SampledCells {
  float start, size;
  int cells, samples, extent;

  // The two pixels around a sample. Up to one pixel outside the map only the edge pixel counts;
  // samples further outside count nothing.
  struct Tap {
    int low, high;
    float fraction;  // weight of `high`
    bool is_inside;

    CAFFE_HOST_DEVICE inline float WeightOf(int pixel) const {
      if (!is_inside) return 0;
      return (low == pixel ? 1 - fraction : 0) + (high == pixel ? fraction : 0);
    }
  };
  CAFFE_HOST_DEVICE inline Tap At(int cell, int sample) const {
    const float step = (static_cast<float>(sample) + 0.5f) * size / static_cast<float>(samples);
    const float at = start + static_cast<float>(cell) * size + step;
    if (!(at >= -1 && at <= static_cast<float>(extent))) return {0, 0, 0, false};
    const float inside = at < 0 ? 0 : at;
    const int low = static_cast<int>(inside);
    if (low >= extent - 1) return {extent - 1, extent - 1, 0, true};
    return {low, low + 1, inside - static_cast<float>(low), true};
  }
  // Samples of a cell that may be inside; may include a few too many to allow for rounding.
  CAFFE_HOST_DEVICE inline PixelRange SamplesInside(int cell) const {
    const float step = size / static_cast<float>(samples);
    const float first = start + static_cast<float>(cell) * size;
    return {NearestPlace(std::floor((-2 - first) / step) - 1, samples),
            NearestPlace(std::ceil((static_cast<float>(extent) + 1 - first) / step) + 1, samples)};
  }
  // Weight of a pixel in a cell, times `samples`.
  CAFFE_HOST_DEVICE inline float WeightIn(int cell, int pixel) const {
    const PixelRange inside = SamplesInside(cell);
    float weight = 0;
    for (int k = inside.begin; k < inside.end; ++k) weight += At(cell, k).WeightOf(pixel);
    return weight;
  }
  // Cells in which a pixel may have weight; may include a few too many to allow for rounding.
  CAFFE_HOST_DEVICE inline PixelRange CellsAround(int pixel) const {
    const float at = static_cast<float>(pixel);
    return {NearestPlace(std::floor((at - 1 - start) / size) - 1, cells),
            NearestPlace(std::ceil((at + 1 - start) / size) + 1, cells)};
  }
};

struct SampledRegion : RegionOp {
  // Float cannot distinguish more samples.
  static constexpr int kMostSamples = 1 << 24;
  int samples = 2;  // per cell and axis; 0: as many as the cell has pixels

  SampledRegion(const RegionSizes& sizes, int samples) : RegionOp(sizes), samples(samples) {}

  CAFFE_HOST_DEVICE inline SampledCells Axis(float low, float high, int cells, int extent) const {
    const float start = low * scale, end = high * scale;
    if (!IsBounded(start, end)) return {0, 1, cells, 1, 0};  // extent 0: no sample is inside
    const float size = std::max(end - start, 1.0f) / static_cast<float>(cells);
    return {start, size, cells, samples > 0 ? samples : NearestPlace(std::ceil(size), kMostSamples),
            extent};
  }
  template <typename Rois>
  CAFFE_HOST_DEVICE inline SampledCells RowsOf(const Rois& rois, int region) const {
    return Axis(Edge(rois, region, 1), Edge(rois, region, 3), rows, height);
  }
  template <typename Rois>
  CAFFE_HOST_DEVICE inline SampledCells ColumnsOf(const Rois& rois, int region) const {
    return Axis(Edge(rois, region, 0), Edge(rois, region, 2), columns, width);
  }
};

// (x, rois) -> (y):  the mean of bilinear samples in each cell.
struct RegionAlign : SampledRegion {
  static constexpr std::string_view kName = "RegionAlign";
  static constexpr int kInputs = 2;
  using SampledRegion::SampledRegion;

  template <typename A, typename X, typename Rois>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& x, const Rois& rois) const {
    const RegionPlace cell = CellPlace(i);
    const int item = ItemOf(rois, cell.outer);
    if (item < 0) return static_cast<A>(NAN);
    if (!has_pixels()) return A(0);
    const SampledCells down = RowsOf(rois, cell.outer), across = ColumnsOf(rois, cell.outer);
    const PixelRange near_rows = down.SamplesInside(cell.row);
    const PixelRange near_columns = across.SamplesInside(cell.column);
    A sum = 0;
    for (int k = near_rows.begin; k < near_rows.end; ++k) {
      const SampledCells::Tap row = down.At(cell.row, k);
      for (int m = near_columns.begin; m < near_columns.end; ++m) {
        const SampledCells::Tap column = across.At(cell.column, m);
        if (!row.is_inside || !column.is_inside) continue;
        const A to_bottom = static_cast<A>(row.fraction),
                to_right = static_cast<A>(column.fraction);
        const int64_t top = MapIndex(item, cell.channel, row.low, 0);
        const int64_t bottom = MapIndex(item, cell.channel, row.high, 0);
        sum += (1 - to_bottom) *
                   ((1 - to_right) * x[top + column.low] + to_right * x[top + column.high]) +
               to_bottom *
                   ((1 - to_right) * x[bottom + column.low] + to_right * x[bottom + column.high]);
      }
    }
    return sum / (static_cast<A>(down.samples) * static_cast<A>(across.samples));
  }
};

// (dy, rois) -> (dx):  bilinear weights are products of the weights of both axes.
struct RegionAlignGrad : SampledRegion {
  static constexpr std::string_view kName = "RegionAlignGrad";
  static constexpr int kInputs = 2;
  using SampledRegion::SampledRegion;

  template <typename A, typename Dy, typename Rois>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Dy& dy, const Rois& rois) const {
    const RegionPlace at = MapPlace(i);
    A sum = 0;
    for (int region = 0; region < regions; ++region) {
      if (ItemOf(rois, region) != at.outer) continue;
      const SampledCells down = RowsOf(rois, region), across = ColumnsOf(rois, region);
      const PixelRange near_rows = down.CellsAround(at.row);
      const PixelRange near_columns = across.CellsAround(at.column);
      A of_region = 0;
      for (int row = near_rows.begin; row < near_rows.end; ++row) {
        const A weight = static_cast<A>(down.WeightIn(row, at.row));
        if (weight == 0) continue;
        for (int column = near_columns.begin; column < near_columns.end; ++column) {
          of_region += weight * static_cast<A>(across.WeightIn(column, at.column)) *
                       dy[CellIndex(region, at.channel, row, column)];
        }
      }
      sum += of_region / (static_cast<A>(down.samples) * static_cast<A>(across.samples));
    }
    return sum;
  }
};

}  // namespace caffe::ops
