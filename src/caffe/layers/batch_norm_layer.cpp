#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/norm_eps.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe {
namespace {

// Batch normalisation in two dialects. BVLC: 3 blobs (decaying sums of mean and variance, and the
// factor by which to divide them). NVCaffe, recognised by scale_bias, scale_filler or bias_filler:
// 5 blobs (moving averages, 1, scale, bias); use_global_stats has no effect.
class BatchNormLayer final : public Layer {
 public:
  explicit BatchNormLayer(const LayerParameter& param)
      : Layer(param), options_(param.batch_norm_param()) {
    RequireEps(options_.eps());
    for (int i = 0; i < std::min(param.param_size(), 3); ++i) {
      Require(
          !param.param(i).has_lr_mult() || param.param(i).lr_mult() == 0 || has_scale_and_bias(),
          "param ", i, " has lr_mult ", param.param(i).lr_mult(),
          ", but the statistics are not learned; set lr_mult: 0 or leave it out");
    }
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() >= 1, "needs a bottom with at least one axis");
    return {bottoms[0]};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const Shape channels{Channels(bottoms[0])};
    FillerParameter zero, one;
    one.set_value(1);
    const bool factor_starts_at_one = has_scale_and_bias();
    std::vector<ParamDeclaration> params = {
        {channels, zero, /*is_learnable=*/false},
        {channels, zero, /*is_learnable=*/false},
        {Shape{1}, factor_starts_at_one ? one : zero, /*is_learnable=*/false}};
    if (has_scale_and_bias()) {
      params.push_back({channels, options_.has_scale_filler() ? options_.scale_filler() : one});
      params.push_back({channels, options_.bias_filler()});
    }
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value *x = graph.bottom(0), *y = graph.top(0);
    if (uses_given_statistics()) {
      std::vector<Value*> inputs = {x, graph.param(0), graph.param(1), graph.param(2)};
      AppendScaleAndBias(graph, &inputs);
      graph.Emit(ops::BatchNormInference{.eps = eps()}, inputs, {y});
      return;
    }
    const Shape& shape = graph.shape(x);
    std::vector<Value*> inputs = {x};
    AppendScaleAndBias(graph, &inputs);
    graph.Emit(ops::BatchNorm{.eps = eps()}, inputs, {y, Mean(graph), Variance(graph)});
    graph.Emit(
        ops::UpdateRunningStatistics{.fraction = options_.moving_average_fraction(),
                                     .count = shape.count() / std::max<int64_t>(Channels(shape), 1),
                                     .decaying_sums = !has_scale_and_bias()},
        {Mean(graph), Variance(graph)}, {graph.param(0), graph.param(1), graph.param(2)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value *x = graph.bottom(0), *dy = graph.top_diff(0), *dx = graph.bottom_diff(0);
    if (uses_given_statistics()) {
      std::vector<Value*> inputs = {dy, graph.param(1), graph.param(2)};
      if (has_scale_and_bias()) inputs.push_back(graph.param(3));
      graph.Emit(ops::BatchNormInferenceGrad{.eps = eps()}, inputs, {dx});
      return;
    }
    std::vector<Value*> inputs = {x, Mean(graph), Variance(graph), dy}, outputs = {dx};
    if (has_scale_and_bias()) {
      inputs.push_back(graph.param(3));
      outputs.push_back(graph.param_diff(3));
      outputs.push_back(graph.param_diff(4));
    }
    graph.Emit(ops::BatchNormGrad{.eps = eps()}, inputs, outputs);
  }

 private:
  bool has_scale_and_bias() const {
    return options_.scale_bias() || options_.has_scale_filler() || options_.has_bias_filler();
  }
  bool uses_given_statistics() const {
    if (has_scale_and_bias() || !options_.has_use_global_stats()) return phase() == TEST;
    return options_.use_global_stats();
  }
  // cuDNN's lower bound, which NVCaffe applies on every device.
  double eps() const {
    return has_scale_and_bias() ? std::max<double>(options_.eps(), 1e-5) : options_.eps();
  }
  static int64_t Channels(const Shape& shape) { return shape.num_axes() == 1 ? 1 : shape[1]; }

  void AppendScaleAndBias(GraphBuilder& graph, std::vector<Value*>* inputs) const {
    if (!has_scale_and_bias()) return;
    inputs->push_back(graph.param(3));
    inputs->push_back(graph.param(4));
  }
  Value* Mean(GraphBuilder& graph) const {
    return graph.Saved("mean", Shape{Channels(graph.shape(graph.bottom(0)))});
  }
  Value* Variance(GraphBuilder& graph) const {
    return graph.Saved("variance", Shape{Channels(graph.shape(graph.bottom(0)))});
  }

  const BatchNormParameter options_;
};

REGISTER_LAYER_CLASS(BatchNorm);

}  // namespace
}  // namespace caffe
