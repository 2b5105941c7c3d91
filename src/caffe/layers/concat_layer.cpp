#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Concatenates its bottoms along `axis` (old files: concat_dim).
class ConcatLayer final : public Layer {
 public:
  explicit ConcatLayer(const LayerParameter& param) : Layer(param), options_(param.concat_param()) {
    Require(!options_.has_axis() || !options_.has_concat_dim(),
            "has both axis and the old concat_dim; give one");
  }

  LayerTraits traits() const override { return {.min_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int axis = Axis(bottoms[0]);
    int64_t extent = 0;
    for (const Shape& bottom : bottoms) {
      Require(bottom.num_axes() == bottoms[0].num_axes() &&
                  bottom.With(axis, 0) == bottoms[0].With(axis, 0),
              "bottoms of shapes ", bottoms[0], " and ", bottom,
              " can only differ in the axis along which they are joined, ", axis,
              "; make the others equal, or set concat_param { axis }");
      extent += bottom[axis];
    }
    return {bottoms[0].With(axis, extent)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> bottoms;
    for (int i = 0; i < graph.num_bottoms(); ++i) bottoms.push_back(graph.bottom(i));
    graph.Emit(ops::Concat{.axis = Axis(graph.shape(bottoms[0]))}, bottoms, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const int axis = Axis(graph.shape(graph.bottom(0)));
    int64_t offset = 0;
    for (int i = 0; i < graph.num_bottoms(); ++i) {
      graph.Emit(ops::SliceOf{.axis = axis, .offset = offset}, {graph.top_diff(0)},
                 {graph.bottom_diff(i)});
      offset += graph.shape(graph.bottom(i))[axis];
    }
  }

 private:
  int Axis(const Shape& bottom) const {
    if (!options_.has_concat_dim()) return bottom.CanonicalAxis(options_.axis());
    Require(options_.concat_dim() < kMaxAxes, "concat_dim is ", options_.concat_dim(),
            "; it must be an axis of shape ", bottom);
    return bottom.CanonicalAxis(static_cast<int>(options_.concat_dim()));
  }

  const ConcatParameter options_;
};

REGISTER_LAYER_CLASS(Concat);

}  // namespace
}  // namespace caffe
