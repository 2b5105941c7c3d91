#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Passes on the items of its bottoms for which the last bottom, the selector, is not 0. Their
// number is known only at run time; if it differs from that of the previous batch, the following
// part of the net is planned again.
class FilterLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    const int selected = std::max(param().bottom_size() - 1, 1);
    return {.min_bottoms = 2, .num_tops = selected};
  }

  // Before data has been seen, assumes that all items are selected.
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& selector = bottoms.back();
    Require(selector.num_axes() >= 1 && selector.count() == selector[0], "the selector has shape ",
            selector, "; it must hold one number per item");
    for (const Shape& bottom : bottoms) {
      Require(bottom.num_axes() >= 1 && bottom[0] == selector[0], "a bottom of shape ", bottom,
              " has not the ", selector[0], " items of the selector");
    }
    return {bottoms.begin(), bottoms.end() - 1};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(
        ops::HostCall{
            .what = "select items", .call = Select, .rounded_inputs = OperandSet{0}.Others()},
        Operands(graph), {Selected(graph)});
    for (int i = 0; i < graph.num_tops(); ++i) {
      graph.Emit(ops::Gather{}, {graph.bottom(i), Selected(graph)}, {graph.top(i)});
    }
  }

  void EmitBackward(GraphBuilder& graph) const override {
    for (int i = 0; i < graph.num_tops(); ++i) {
      graph.Emit(ops::GatherGrad{}, {graph.top_diff(i), Selected(graph)}, {graph.bottom_diff(i)});
    }
  }

  bool AllowForceBackward(int bottom) const override { return bottom < param().bottom_size() - 1; }

 private:
  // The selector comes first; the other operands determine the tops' shapes.
  static std::vector<Value*> Operands(GraphBuilder& graph) {
    std::vector<Value*> operands = {graph.bottom(graph.num_tops())};
    for (int i = 0; i < graph.num_tops(); ++i) operands.push_back(graph.bottom(i));
    return operands;
  }

  static Value* Selected(GraphBuilder& graph) {
    return graph.Saved("selected", Shape{graph.shape(graph.top(0))[0]});
  }

  // Returns the tops' shapes if they differ from the planned ones.
  static std::vector<Shape> Select(const KernelContext& ctx) {
    const TensorView &selector = ctx.input(0), &selected = ctx.output(0);
    std::vector<double> values(selector.count());
    CopyTensor(selector, {{selector.shape, DType::kDouble, Layout::kPlain}, values.data()});
    const int64_t count =
        static_cast<int64_t>(values.size()) - std::count(values.begin(), values.end(), 0.0);
    if (count != selected.count()) {
      std::vector<Shape> tops;
      for (size_t i = 1; i < ctx.inputs.size(); ++i) {
        tops.push_back(ctx.inputs[i].shape.With(0, count));
      }
      return tops;
    }
    VisitFloat(selected.dtype, [&]<typename T>(TypeTag<T>) {
      T* out = selected.as<T>();
      for (size_t i = 0; i < values.size(); ++i) {
        if (values[i] != 0) *out++ = T(static_cast<float>(i));
      }
    });
    return {};
  }
};

REGISTER_LAYER_CLASS(Filter);

}  // namespace
}  // namespace caffe
