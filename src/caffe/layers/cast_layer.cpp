#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/round_to.hpp"

namespace caffe {
namespace {

// The layer's types are those of the top, unless the file has others.
LayerParameter WithTypeOfTop(LayerParameter param) {
  static constexpr Type kTypes[] = {FLOAT, FLOAT16, BFLOAT16, DOUBLE};
  const Precision type = param.cast_param().type();
  if (type > FP64) return param;  // refused below
  if (!param.has_forward_type()) param.set_forward_type(kTypes[type]);
  return param;
}

// The bottom's numbers, rounded to a type and stored in it. The gradient passes unchanged.
class CastLayer final : public Layer {
 public:
  explicit CastLayer(const LayerParameter& param) : Layer(WithTypeOfTop(param)) {
    const Precision type = param.cast_param().type();
    Require(type <= FP64, "type is ", Precision_Name(type),
            ", which is not a type of numbers; use FP32, FP16, BF16 or FP64");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return bottoms;
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::RoundTo{TypeOfTop()}, {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (graph.wants_bottom_diff(0)) graph.SetBottomDiff(0, graph.top_diff(0));
  }

 private:
  DType TypeOfTop() const {
    switch (param().cast_param().type()) {
      case FP16:
        return DType::kFloat16;
      case BF16:
        return DType::kBFloat16;
      case FP64:
        return DType::kDouble;
      default:
        return DType::kFloat;
    }
  }
};

REGISTER_LAYER_CLASS(Cast);

}  // namespace
}  // namespace caffe
