// Common base of Flip and Reverse.
#pragma once

#include <vector>

#include "caffe/layer.hpp"
#include "caffe/layers/axis_matrix.hpp"

namespace caffe {

// Reverses the order along some axes; this is its own inverse.
class ReverseBase : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Axes(bottoms[0]);
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Emit(graph, "turned", graph.bottom(0), graph.top(0));
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (graph.wants_bottom_diff(0)) Emit(graph, "dturned", graph.top_diff(0), graph.bottom_diff(0));
  }

 protected:
  // Returns at least one axis. Throws InvalidArgument for an axis that the bottom does not have.
  virtual std::vector<int> Axes(const Shape& bottom) const = 0;

 private:
  void Emit(GraphBuilder& graph, const std::string& name, Value* x, Value* y) const {
    const Shape shape = graph.shape(graph.bottom(0));
    const std::vector<int> axes = Axes(shape);
    for (size_t i = 0; i < axes.size(); ++i) {
      AxisMatrix reversed(shape[axes[i]]);
      for (int64_t k = shape[axes[i]] - 1; k >= 0; --k) reversed.AddRow({{k, 1}});
      const std::string step = StrCat(name, i);
      Value* turned = i + 1 == axes.size() ? y : graph.Scratch(step, shape);
      reversed.Emit(graph, step, axes[i], x, turned);
      x = turned;
    }
  }
};

}  // namespace caffe
