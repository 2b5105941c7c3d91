#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Axes axis..end_axis become one.
class FlattenLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(param().top(0) != param().bottom(0),
            "cannot run in place; give top another name than '", param().bottom(0), "'");
    const Shape& bottom = bottoms[0];
    const int first = bottom.CanonicalAxis(param().flatten_param().axis());
    const int last = bottom.CanonicalAxis(param().flatten_param().end_axis());
    Require(first <= last, "axis ", first, " comes after end_axis ", last);
    std::vector<int64_t> dims(bottom.dims().begin(), bottom.dims().begin() + first);
    dims.push_back(bottom.count(first, last + 1));
    dims.insert(dims.end(), bottom.dims().begin() + last + 1, bottom.dims().end());
    return {Shape(dims)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::View{}, {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::View{}, {graph.top_diff(0)}, {graph.bottom_diff(0)});
  }
};

REGISTER_LAYER_CLASS(Flatten);

}  // namespace
}  // namespace caffe
