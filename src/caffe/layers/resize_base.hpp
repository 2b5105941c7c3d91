// Common base of layers that resize images by filters along rows and columns.
#pragma once

#include <array>
#include <vector>

#include "caffe/layer.hpp"
#include "caffe/layers/axis_matrix.hpp"

namespace caffe {

// Height and width.
using ImageSize = std::array<int64_t, 2>;

// `extent` times `factor`, rounded down. Throws InvalidArgument if the result is out of range.
int64_t ScaledExtent(int64_t extent, double factor);

inline ImageSize ImageSizeOf(const Shape& image) {
  return {image[2], image[3]};
}

// Multiplies each column, then each row (or in the reverse order, whichever is less work) by a
// matrix; the gradient uses its transpose.
class ResizeBase : public Layer {
 public:
  using Layer::Layer;

  // Only the height and width of a second bottom are used.
  LayerTraits traits() const override {
    return {.min_bottoms = 1, .max_bottoms = 2, .num_tops = 1};
  }
  bool AllowForceBackward(int bottom) const override { return bottom == 0; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override;
  void EmitForward(GraphBuilder& graph) const override;
  void EmitBackward(GraphBuilder& graph) const override;

 protected:
  // Throws InvalidArgument if the options or bottoms are invalid; the caller checks that the size
  // is positive.
  virtual ImageSize TopSize(const std::vector<Shape>& bottoms) const = 0;
  // Filter of axis 0 (height) or 1 (width).
  virtual AxisMatrix Filter(int axis, const ImageSize& from, const ImageSize& to) const = 0;

  // The size of a second bottom. `has_options`: true if the file gives a size as well.
  static ImageSize SizeOfSecondBottom(const std::vector<Shape>& bottoms, bool has_options);
  // y = the filtered x, an image of the bottom's size; `name` must be unique within the layer.
  void EmitFilters(GraphBuilder& graph, const std::string& name, Value* x, Value* y) const;
  // Emits the gradient of x.
  void EmitFiltersGrad(GraphBuilder& graph, const std::string& name, Value* dy, Value* dx) const;
};

}  // namespace caffe
