#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/reduce.hpp"

namespace caffe {
namespace {

// Indices of the top_k largest values: per item over all other axes, or along `axis`. With
// out_max_val also the values (without axis), or only the values (with axis).
class ArgMaxLayer final : public Layer {
 public:
  explicit ArgMaxLayer(const LayerParameter& param) : Layer(param), options_(param.argmax_param()) {
    Require(options_.top_k() >= 1, "top_k is ", options_.top_k(), "; it must be at least 1");
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .has_backward = false};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape searched = Searched(bottoms[0]);
    const int axis = Axis(bottoms[0]);
    Require(top_k() <= searched[axis], "top_k is ", top_k(), ", but there are only ",
            searched[axis], " values to choose from in shape ", bottoms[0]);
    if (options_.has_axis()) return {searched.With(axis, top_k())};
    std::vector<int64_t> top = {searched[0], options_.out_max_val() ? 2 : 1, top_k()};
    top.resize(std::max(3, bottoms[0].num_axes()), 1);
    return {Shape(top)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value *x = graph.bottom(0), *y = graph.top(0);
    const Shape& shape = graph.shape(x);
    const ops::ArgMax op{.axis = Axis(shape), .top_k = top_k()};
    if (options_.has_axis()) {
      options_.out_max_val() ? graph.Emit(op, {x}, {nullptr, y}) : graph.Emit(op, {x}, {y});
      return;
    }
    const Shape searched = Searched(shape);
    Value* rows = graph.Scratch("rows", searched);
    graph.Emit(ops::View{}, {x}, {rows});
    Value* indices = graph.Scratch("indices", Shape{searched[0], top_k()});
    if (!options_.out_max_val()) {
      graph.Emit(op, {rows}, {indices});
      graph.Emit(ops::View{}, {indices}, {y});
      return;
    }
    Value* values = graph.Scratch("values", Shape{searched[0], top_k()});
    Value* both = graph.Scratch("both", Shape{searched[0], 2 * top_k()});
    graph.Emit(op, {rows}, {indices, values});
    graph.Emit(ops::Concat{.axis = 1}, {indices, values}, {both});
    graph.Emit(ops::View{}, {both}, {y});
  }

 private:
  int64_t top_k() const { return options_.top_k(); }

  // Without an axis, an item is a single row.
  Shape Searched(const Shape& bottom) const {
    if (options_.has_axis()) return bottom;
    Require(bottom.num_axes() >= 1, "the bottom is a scalar; it must have items");
    return Shape{bottom[0], bottom.count(1)};
  }
  int Axis(const Shape& bottom) const {
    return options_.has_axis() ? bottom.CanonicalAxis(options_.axis()) : 1;
  }

  const ArgMaxParameter options_;
};

REGISTER_LAYER_CLASS(ArgMax);

}  // namespace
}  // namespace caffe
