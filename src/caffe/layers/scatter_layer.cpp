#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/pick.hpp"

namespace caffe {
namespace {

// Bottom 0, in which the elements along `axis` that the indices in bottom 1 name are replaced by
// those of bottom 2, or increased by them.
class ScatterLayer final : public Layer {
 public:
  explicit ScatterLayer(const LayerParameter& param)
      : Layer(param), options_(param.scatter_param()) {}

  LayerTraits traits() const override { return {.num_bottoms = 3, .num_tops = 1}; }
  bool AllowForceBackward(int bottom) const override { return bottom != 1; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &data = bottoms[0], &index = bottoms[1], &updates = bottoms[2];
    const int axis = data.CanonicalAxis(options_.axis());
    Require(index == updates, "the indices and the updates have shapes ", index, " and ", updates,
            "; they must be equal");
    Require(index.num_axes() == data.num_axes() && index.With(axis, data[axis]) == data,
            "the data and the indices have shapes ", data, " and ", index,
            "; they must be equal except along axis ", axis);
    return {data};
  }

  void EmitForward(GraphBuilder& graph) const override {
    if (IsUnchanged(graph)) {
      graph.Emit(ops::View{}, {graph.bottom(0)}, {graph.top(0)});
      return;
    }
    graph.Emit(ops::PutElements{Axis(graph), options_.add()},
               {graph.bottom(2), graph.bottom(1), graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dy = graph.top_diff(0);
    if (!options_.add() && !IsUnchanged(graph)) {
      graph.Emit(ops::ClearElements{Axis(graph)}, {dy, graph.bottom(1)}, {graph.bottom_diff(0)});
    } else if (graph.wants_bottom_diff(0)) {
      graph.SetBottomDiff(0, dy);
    }
    graph.Emit(ops::TakeElements{Axis(graph), /*last_only=*/!options_.add()}, {dy, graph.bottom(1)},
               {graph.bottom_diff(2)});
  }

 private:
  // True without updates; plans write 0 instead of running an op whose inputs are empty.
  static bool IsUnchanged(GraphBuilder& graph) { return graph.shape(graph.bottom(2)).count() == 0; }
  ops::PickedAxis Axis(GraphBuilder& graph) const {
    const Shape& data = graph.shape(graph.bottom(0));
    const int axis = data.CanonicalAxis(options_.axis());
    return {data[axis], graph.shape(graph.bottom(1))[axis], data.count(axis + 1)};
  }

  const ScatterParameter options_;
};

REGISTER_LAYER_CLASS(Scatter);

}  // namespace
}  // namespace caffe
