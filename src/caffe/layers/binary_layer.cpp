#include <optional>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/broadcast.hpp"
#include "caffe/layers/expression/formula_layer.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"

namespace caffe {
namespace {

const char* BinaryFormula(BinaryParameter::Operation operation) {
  switch (operation) {
    case BinaryParameter::ADD:
      return "a + b";
    case BinaryParameter::SUBTRACT:
      return "a - b";
    case BinaryParameter::MULTIPLY:
      return "a * b";
    case BinaryParameter::DIVIDE:
      return "a / b";
    // A NaN is taken, or the first of equal numbers, and gets the gradient.
    case BinaryParameter::MAXIMUM:
      return "where(where(a == a, a >= b, 1), a, b)";
    case BinaryParameter::MINIMUM:
      return "where(where(a == a, a <= b, 1), a, b)";
    case BinaryParameter::POWER:
      break;
  }
  return "a ^ b";
}

// An operation of two bottoms with NumPy's broadcasting.
class BinaryLayer final : public FormulaLayer {
 public:
  explicit BinaryLayer(const LayerParameter& param)
      : FormulaLayer(param,
                     ParseFormula(BinaryFormula(param.binary_param().operation()), {"a", "b"})),
        operation_(param.binary_param().operation()) {}

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {BroadcastShape(bottoms)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    if (EmitAsEltwise(graph) || EmitAsFactor(graph, 0, 1) || EmitAsFactor(graph, 1, 0)) return;
    FormulaLayer::EmitForward(graph);
  }

 private:
  static bool IsWhole(GraphBuilder& graph, int bottom) {
    return graph.shape(graph.bottom(bottom)) == graph.shape(graph.top(0));
  }

  // Sums and products of equal shapes are those of Eltwise, which other ops can take in.
  bool EmitAsEltwise(GraphBuilder& graph) const {
    if (!IsWhole(graph, 0) || !IsWhole(graph, 1)) return false;
    const std::vector<Value*> bottoms = {graph.bottom(0), graph.bottom(1)};
    switch (operation_) {
      case BinaryParameter::ADD:
        graph.Emit(ops::EltwiseSum{}, bottoms, {graph.top(0)});
        return true;
      case BinaryParameter::SUBTRACT:
        graph.Emit(ops::EltwiseSum{.coefficients = {1, -1}}, bottoms, {graph.top(0)});
        return true;
      case BinaryParameter::MULTIPLY:
        graph.Emit(ops::EltwiseProd{}, bottoms, {graph.top(0)});
        return true;
      default:
        return false;
    }
  }

  // An operand that covers axes which follow each other is added or multiplied as by Bias or Scale.
  bool EmitAsFactor(GraphBuilder& graph, int large, int small) const {
    if (operation_ != BinaryParameter::ADD && operation_ != BinaryParameter::MULTIPLY) return false;
    if (!IsWhole(graph, large)) return false;
    const std::optional<ops::BroadcastAxes> axes =
        CoveredBy(graph.shape(graph.bottom(small)), graph.shape(graph.top(0)));
    if (!axes) return false;
    const std::vector<int64_t>& dims = graph.shape(graph.top(0)).dims();
    Value* factors = graph.Scratch(
        "factors", Shape(std::vector<int64_t>(dims.begin() + axes->axis,
                                              dims.begin() + axes->axis + axes->num_axes)));
    graph.Emit(ops::View{}, {graph.bottom(small)}, {factors});
    if (operation_ == BinaryParameter::ADD) {
      graph.Emit(ops::AddBias{*axes}, {graph.bottom(large), factors}, {graph.top(0)});
    } else {
      graph.Emit(ops::ScaleShift{*axes}, {graph.bottom(large), factors}, {graph.top(0)});
    }
    return true;
  }

  // The axes of `whole` that a smaller shape has; nothing if it is repeated between them.
  static std::optional<ops::BroadcastAxes> CoveredBy(const Shape& part, const Shape& whole) {
    const int missing = whole.num_axes() - part.num_axes();
    int first = 0, last = part.num_axes();
    while (last > 0 && part[last - 1] == 1) --last;
    while (first < last && part[first] == 1) ++first;
    for (int axis = first; axis < last; ++axis) {
      if (part[axis] != whole[axis + missing]) return std::nullopt;
    }
    if (first == last) return ops::BroadcastAxes{.axis = 0, .num_axes = 0};
    return ops::BroadcastAxes{.axis = first + missing, .num_axes = last - first};
  }

  const BinaryParameter::Operation operation_;
};

REGISTER_LAYER_CLASS(Binary);

}  // namespace
}  // namespace caffe
