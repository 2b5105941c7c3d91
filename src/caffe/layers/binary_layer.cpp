#include <optional>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/broadcast.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/combine.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {
namespace {

// An operation of two bottoms with NumPy's broadcasting.
class BinaryLayer final : public Layer {
 public:
  explicit BinaryLayer(const LayerParameter& param)
      : Layer(param), operation_(param.binary_param().operation()) {}

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {BroadcastShape(bottoms)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    if (EmitAsEltwise(graph) || EmitAsFactor(graph, 0, 1) || EmitAsFactor(graph, 1, 0)) return;
    graph.Emit(ops::Combine{Kind(), StepsOf(Shapes(graph), graph.shape(graph.top(0)))},
               {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    for (int i = 0; i < 2; ++i) {
      if (graph.wants_bottom_diff(i)) EmitGradient(graph, i);
    }
  }

 private:
  static std::vector<Shape> Shapes(GraphBuilder& graph) {
    return {graph.shape(graph.bottom(0)), graph.shape(graph.bottom(1))};
  }
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

  void EmitGradient(GraphBuilder& graph, int i) const {
    Value *dy = graph.top_diff(0), *whole = dy;
    const bool is_whole = IsWhole(graph, i);
    const bool is_sum =
        operation_ == BinaryParameter::ADD || operation_ == BinaryParameter::SUBTRACT;
    const bool is_negative = operation_ == BinaryParameter::SUBTRACT && i == 1;
    const std::string number = std::to_string(i);
    if (!is_sum) {
      std::vector<Shape> shapes = Shapes(graph);
      shapes.push_back(graph.shape(dy));
      whole = is_whole ? graph.bottom_diff(i) : graph.Scratch("whole" + number, graph.shape(dy));
      graph.Emit(ops::CombineGrad{Kind(), i, StepsOf(shapes, graph.shape(dy))},
                 {graph.bottom(0), graph.bottom(1), dy}, {whole});
      if (is_whole) return;
    } else if (is_whole && !is_negative) {
      graph.SetBottomDiff(i, dy);
      return;
    }
    Value* sum = whole;
    if (!is_whole) {
      const Shape& shape = graph.shape(graph.bottom(i));
      sum = is_negative ? graph.Scratch("sum" + number, shape) : graph.bottom_diff(i);
      EmitSumOfRepeats(graph, "sorted" + number, whole, sum);
    }
    if (is_negative) graph.Emit(ops::ScaleBy{-1}, {sum}, {graph.bottom_diff(i)});
  }

  ops::Combination Kind() const {
    return static_cast<ops::Combination>(static_cast<int>(operation_));
  }

  const BinaryParameter::Operation operation_;
};

REGISTER_LAYER_CLASS(Binary);

}  // namespace
}  // namespace caffe
