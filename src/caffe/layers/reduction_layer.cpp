#include "caffe/layer_factory.hpp"
#include "caffe/ops/reduce.hpp"

namespace caffe {
namespace {

// Reduces all axes from `axis` on to a single number: sum, sum of absolute values, sum of squares
// or mean, times `coeff`.
class ReductionLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const std::vector<int64_t>& dims = bottoms[0].dims();
    const int axis = bottoms[0].CanonicalAxis(param().reduction_param().axis());
    return {Shape(std::vector<int64_t>(dims.begin(), dims.begin() + axis))};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Reduce{.reduction = Kind(), .coefficient = param().reduction_param().coeff()},
               {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(
        ops::ReduceGrad{.reduction = Kind(), .coefficient = param().reduction_param().coeff()},
        {graph.bottom(0), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  ops::Reduction Kind() const {
    switch (param().reduction_param().operation()) {
      case ReductionParameter::ASUM:
        return ops::Reduction::kAbsSum;
      case ReductionParameter::SUMSQ:
        return ops::Reduction::kSumOfSquares;
      case ReductionParameter::MEAN:
        return ops::Reduction::kMean;
      default:
        return ops::Reduction::kSum;
    }
  }
};

REGISTER_LAYER_CLASS(Reduction);

}  // namespace
}  // namespace caffe
