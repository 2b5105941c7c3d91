#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/gemm.hpp"

namespace caffe {
namespace {

// y = x w^T + b. Axes from `axis` on are flattened to K elements; those before it are rows. Weights
// are num_output x K, or K x num_output with `transpose`.
class InnerProductLayer final : public Layer {
 public:
  explicit InnerProductLayer(const LayerParameter& param)
      : Layer(param), options_(param.inner_product_param()) {
    Require(options_.num_output() > 0, "num_output is ", options_.num_output(),
            "; set inner_product_param { num_output } to at least 1");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int axis = bottoms[0].CanonicalAxis(options_.axis());
    const std::vector<int64_t>& dims = bottoms[0].dims();
    std::vector<int64_t> top(dims.begin(), dims.begin() + axis);
    top.push_back(columns());
    return {Shape(top)};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const int64_t inner = bottoms[0].count(bottoms[0].CanonicalAxis(options_.axis()));
    std::vector<ParamDeclaration> params;
    params.push_back({options_.transpose() ? Shape{inner, columns()} : Shape{columns(), inner},
                      options_.weight_filler()});
    if (options_.bias_term()) params.push_back({Shape{columns()}, options_.bias_filler()});
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const auto [rows, inner] = Sizes(graph);
    std::vector<Value*> inputs = {graph.bottom(0), graph.param(0)};
    if (options_.bias_term()) inputs.push_back(graph.param(1));
    graph.Emit(ops::Gemm{.rows = rows,
                         .columns = columns(),
                         .inner = inner,
                         .transpose_b = !options_.transpose()},
               inputs, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const auto [rows, inner] = Sizes(graph);
    Value *x = graph.bottom(0), *dy = graph.top_diff(0);
    if (options_.transpose()) {
      graph.Emit(ops::Gemm{.rows = inner, .columns = columns(), .inner = rows, .transpose_a = true},
                 {x, dy}, {graph.param_diff(0)});
    } else {
      graph.Emit(ops::Gemm{.rows = columns(), .columns = inner, .inner = rows, .transpose_a = true},
                 {dy, x}, {graph.param_diff(0)});
    }
    if (options_.bias_term()) {
      const int last = graph.shape(dy).num_axes() - 1;
      graph.Emit(ops::SumToAxes{{.axis = last, .num_axes = 1}}, {dy}, {graph.param_diff(1)});
    }
    graph.Emit(ops::Gemm{.rows = rows,
                         .columns = inner,
                         .inner = columns(),
                         .transpose_b = options_.transpose()},
               {dy, graph.param(0)}, {graph.bottom_diff(0)});
  }

 private:
  struct MatrixSizes {
    int64_t rows, inner;
  };

  MatrixSizes Sizes(const GraphBuilder& graph) const {
    const Shape& bottom = graph.shape(graph.bottom(0));
    const int axis = bottom.CanonicalAxis(options_.axis());
    return {bottom.count(0, axis), bottom.count(axis)};
  }
  int64_t columns() const { return options_.num_output(); }

  const InnerProductParameter options_;
};

REGISTER_LAYER_CLASS(InnerProduct);

}  // namespace
}  // namespace caffe
