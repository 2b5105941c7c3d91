// Common base of layers that pool regions of interest.
#pragma once

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/layer.hpp"
#include "caffe/ops/regions.hpp"
#include "caffe/ops/window.hpp"

namespace caffe {

// Bottoms: a map (N,C,H,W) and boxes, rows of (item, x1, y1, x2, y2). The top contains each box's
// cells.
class RegionLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const ops::RegionSizes sizes = Sizes(bottoms[0], bottoms[1]);
    return {Shape{sizes.regions, sizes.cell_channels, sizes.rows, sizes.columns}};
  }

  // Boxes get no gradient.
  bool AllowForceBackward(int bottom) const override { return bottom == 0; }

 protected:
  // Channels, rows and columns of a box's cells, and pixels of the map per pixel of the image.
  struct Cells {
    int64_t channels, rows, columns;
    float scale;
  };
  // Throws if a map with this number of channels does not match the options.
  virtual Cells CellsOf(int64_t channels) const = 0;

  static void RequireCells(int64_t rows, int64_t columns, float scale) {
    Require(rows > 0 && columns > 0, "pooled_h and pooled_w are ", rows, " and ", columns,
            "; set both to at least 1");
    Require(std::max(rows, columns) <= ops::kMostPlaces, "pooled_h and pooled_w are ", rows,
            " and ", columns, "; they may be at most ", ops::kMostPlaces);
    RequireScale(scale);
  }
  static void RequireScale(float scale) {
    Require(scale > 0, "spatial_scale is ", scale,
            "; it must be above 0: pixels of the feature map per pixel of the boxes, as 0.0625");
  }

  ops::RegionSizes SizesOf(GraphBuilder& graph) const {
    return Sizes(graph.shape(graph.bottom(0)), graph.shape(graph.bottom(1)));
  }

 private:
  ops::RegionSizes Sizes(const Shape& map, const Shape& rois) const {
    Require(map.num_axes() == 4, "bottom 0 has shape ", map, "; it must be a map N,C,H,W");
    Require(rois.num_axes() >= 2 && rois[1] == 5 && rois.count(1) == 5, "bottom 1 has shape ", rois,
            "; it must hold boxes, rows of 5 (item, x1, y1, x2, y2)");
    const auto number = [](int64_t x) { return static_cast<int>(x); };
    const Cells cells = CellsOf(map[1]);
    return {.regions = number(rois[0]),
            .items = number(map[0]),
            .channels = number(map[1]),
            .height = number(map[2]),
            .width = number(map[3]),
            .cell_channels = number(cells.channels),
            .rows = number(cells.rows),
            .columns = number(cells.columns),
            .scale = cells.scale};
  }
};

}  // namespace caffe
