#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/pick.hpp"

namespace caffe {
namespace {

// The k largest or smallest elements along `axis`, and their indices.
class TopKLayer final : public Layer {
 public:
  explicit TopKLayer(const LayerParameter& param) : Layer(param), options_(param.top_k_param()) {
    Require(options_.k() >= 1, "k is ", options_.k(), "; it must be at least 1");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .min_tops = 1, .max_tops = 2}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& bottom = bottoms[0];
    const int axis = bottom.CanonicalAxis(options_.axis());
    Require(options_.k() <= bottom[axis], "k is ", options_.k(), ", but axis ", axis, " of shape ",
            bottom, " has ", bottom[axis], " elements; k must not exceed them");
    const Shape top = bottom.With(axis, options_.k());
    return std::vector<Shape>(param().top_size(), top);
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* indices = graph.num_tops() > 1    ? graph.top(1)
                     : graph.with_backward() ? Indices(graph)
                                             : nullptr;
    graph.Emit(ops::TopK{Axis(graph), options_.largest()}, {graph.bottom(0)},
               {graph.top(0), indices});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (graph.top_diff(0) == nullptr) return;
    Value* indices = graph.num_tops() > 1 ? graph.top(1) : Indices(graph);
    graph.Emit(ops::PutElements{Axis(graph)}, {graph.top_diff(0), indices, nullptr},
               {graph.bottom_diff(0)});
  }

 private:
  ops::PickedAxis Axis(GraphBuilder& graph) const {
    const Shape& bottom = graph.shape(graph.bottom(0));
    const int axis = bottom.CanonicalAxis(options_.axis());
    return {bottom[axis], int64_t{options_.k()}, bottom.count(axis + 1)};
  }
  static Value* Indices(GraphBuilder& graph) {
    return graph.Saved("indices", graph.shape(graph.top(0)));
  }

  const TopKParameter options_;
};

REGISTER_LAYER_CLASS(TopK);

}  // namespace
}  // namespace caffe
