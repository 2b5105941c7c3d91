#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/pick.hpp"

namespace caffe {
namespace {

// The elements of bottom 0 along `axis` that the indices in bottom 1 name.
class GatherLayer final : public Layer {
 public:
  explicit GatherLayer(const LayerParameter& param)
      : Layer(param), axis_(param.gather_param().axis()) {}

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }
  bool AllowForceBackward(int bottom) const override { return bottom == 0; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &data = bottoms[0], &index = bottoms[1];
    const int axis = data.CanonicalAxis(axis_);
    Require(data[axis] > 0 || index.count() == 0, "axis ", axis, " of bottom 0 (shape ", data,
            ") has no elements, but bottom 1 has ", index.count(), " indices");
    std::vector<int64_t> top(data.dims().begin(), data.dims().begin() + axis);
    top.insert(top.end(), index.dims().begin(), index.dims().end());
    top.insert(top.end(), data.dims().begin() + axis + 1, data.dims().end());
    return {Shape(top)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Take{Axis(graph)}, {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::TakeGrad{Axis(graph)}, {graph.top_diff(0), graph.bottom(1)},
               {graph.bottom_diff(0)});
  }

 private:
  ops::PickedAxis Axis(GraphBuilder& graph) const {
    const Shape& data = graph.shape(graph.bottom(0));
    const int axis = data.CanonicalAxis(axis_);
    return {data[axis], graph.shape(graph.bottom(1)).count(), data.count(axis + 1)};
  }

  const int axis_;
};

REGISTER_LAYER_CLASS(Gather);

}  // namespace
}  // namespace caffe
