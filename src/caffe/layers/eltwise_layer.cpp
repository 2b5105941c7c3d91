#include <glog/logging.h>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {
namespace {

// Product, weighted sum or maximum of bottoms of equal shape.
class EltwiseLayer final : public Layer {
 public:
  explicit EltwiseLayer(const LayerParameter& param)
      : Layer(param), options_(param.eltwise_param()) {
    Require(options_.coeff_size() == 0 || options_.coeff_size() == param.bottom_size(), "has ",
            options_.coeff_size(), " coeff entries for ", param.bottom_size(),
            " bottoms; give none or one each");
    if (options_.coeff_size() == 0) return;
    Require(options_.operation() != EltwiseParameter::PROD, "coeff is only for operation: SUM");
    if (options_.operation() == EltwiseParameter::MAX) {
      LOG(WARNING) << "layer '" << param.name() << "': coeff has no effect on operation: MAX";
    }
  }

  LayerTraits traits() const override {
    return {.min_bottoms = 2, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    for (const Shape& bottom : bottoms) {
      Require(bottom == bottoms[0], "the bottoms have shapes ", bottoms[0], " and ", bottom,
              "; they must be equal");
    }
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    switch (options_.operation()) {
      case EltwiseParameter::SUM:
        graph.Emit(
            ops::EltwiseSum{.coefficients = {options_.coeff().begin(), options_.coeff().end()}},
            Bottoms(graph), {graph.top(0)});
        break;
      case EltwiseParameter::PROD:
        graph.Emit(ops::EltwiseProd{}, Bottoms(graph), {graph.top(0)});
        break;
      case EltwiseParameter::MAX:
        graph.Emit(ops::EltwiseMax{}, Bottoms(graph), {graph.top(0), Mask(graph)});
        break;
    }
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dy = graph.top_diff(0);
    for (int i = 0; i < graph.num_bottoms(); ++i) {
      switch (options_.operation()) {
        case EltwiseParameter::SUM:
          EmitSumGrad(graph, i);
          break;
        case EltwiseParameter::PROD: {
          std::vector<Value*> inputs = {graph.top(0), dy};
          for (Value* bottom : Bottoms(graph)) inputs.push_back(bottom);
          graph.Emit(ops::EltwiseProdGrad{.index = i, .stable = options_.stable_prod_grad()},
                     inputs, {graph.bottom_diff(i)});
          break;
        }
        case EltwiseParameter::MAX:
          graph.Emit(ops::EltwiseMaxGrad{.index = i}, {Mask(graph), dy}, {graph.bottom_diff(i)});
          break;
      }
    }
  }

 private:
  void EmitSumGrad(GraphBuilder& graph, int i) const {
    const float coefficient = i < options_.coeff_size() ? options_.coeff(i) : 1.0f;
    if (coefficient == 1.0f) {
      graph.SetBottomDiff(i, graph.top_diff(0));
    } else {
      graph.Emit(ops::ScaleBy{coefficient}, {graph.top_diff(0)}, {graph.bottom_diff(i)});
    }
  }

  static std::vector<Value*> Bottoms(GraphBuilder& graph) {
    std::vector<Value*> bottoms;
    for (int i = 0; i < graph.num_bottoms(); ++i) bottoms.push_back(graph.bottom(i));
    return bottoms;
  }

  static Value* Mask(GraphBuilder& graph) { return graph.Saved("mask", graph.shape(graph.top(0))); }

  const EltwiseParameter options_;
};

REGISTER_LAYER_CLASS(Eltwise);

}  // namespace
}  // namespace caffe
