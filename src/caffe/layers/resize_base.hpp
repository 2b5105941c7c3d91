// What layers have in common that change the size of images by filters along rows and columns.
#pragma once

#include <array>
#include <vector>

#include "caffe/layer.hpp"
#include "caffe/layers/axis_matrix.hpp"

namespace caffe {

// Height and width.
using ImageSize = std::array<int64_t, 2>;

// Whole places of `extent` times `factor`. Throws InvalidArgument where they cannot be counted.
int64_t ScaledExtent(int64_t extent, double factor);

inline ImageSize ImageSizeOf(const Shape& image) {
  return {image[2], image[3]};
}

// Each column, then each row (or the other way round, whichever is less work) is multiplied by a
// matrix; the gradient by its transpose.
class ResizeBase : public Layer {
 public:
  using Layer::Layer;

  // A second bottom gives its height and width only.
  LayerTraits traits() const override {
    return {.min_bottoms = 1, .max_bottoms = 2, .num_tops = 1};
  }
  bool AllowForceBackward(int bottom) const override { return bottom == 0; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override;
  void EmitForward(GraphBuilder& graph) const override;
  void EmitBackward(GraphBuilder& graph) const override;

 protected:
  // Throws InvalidArgument where the options or bottoms do not fit; the caller checks that a size
  // is positive.
  virtual ImageSize TopSize(const std::vector<Shape>& bottoms) const = 0;
  // Filter of axis 0 (height) or 1 (width).
  virtual AxisMatrix Filter(int axis, const ImageSize& from, const ImageSize& to) const = 0;

  // The size that a second bottom has. `has_options`: the file gives one as well.
  static ImageSize SizeOfSecondBottom(const std::vector<Shape>& bottoms, bool has_options);
  // y = the filtered x, an image of the bottom's size; `name` is the layer's own, each time
  // another.
  void EmitFilters(GraphBuilder& graph, const std::string& name, Value* x, Value* y) const;
  // And the gradient of x.
  void EmitFiltersGrad(GraphBuilder& graph, const std::string& name, Value* dy, Value* dx) const;
};

}  // namespace caffe
