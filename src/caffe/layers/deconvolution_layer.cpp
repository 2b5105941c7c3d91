#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/convolution_base.hpp"
#include "caffe/ops/broadcast.hpp"

namespace caffe {
namespace {

// Transposed convolution: forward is a convolution's gradient with respect to its data, and vice
// versa. Weights are (C, num_output / group, kernel...), where C is the number of INPUT channels.
class DeconvolutionLayer final : public ConvolutionBase {
 public:
  explicit DeconvolutionLayer(const LayerParameter& param) : ConvolutionBase(param) {
    CheckOutputs();
  }

  LayerTraits traits() const override { return {.min_bottoms = 1, .equal_bottoms_and_tops = true}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    CheckEqual(bottoms);
    const Shape& bottom = bottoms[0];
    const ops::ConvGeometry geometry = Geometry(bottom);
    const int axis = ChannelAxis(bottom);
    CheckGroups(geometry, bottom);
    std::vector<int64_t> top(bottom.dims().begin(), bottom.dims().begin() + axis);
    top.push_back(options().num_output());
    for (int i = 0; i < geometry.spatial_axes(); ++i) {
      top.push_back(geometry.TransposedOutputSize(i, bottom[axis + 1 + i]));
    }
    return std::vector<Shape>(bottoms.size(), Shape(top));
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const ops::ConvGeometry geometry = Geometry(bottoms[0]);
    std::vector<int64_t> weights = {bottoms[0][ChannelAxis(bottoms[0])],
                                    options().num_output() / geometry.group};
    weights.insert(weights.end(), geometry.kernel.begin(), geometry.kernel.end());
    std::vector<ParamDeclaration> params = {{Shape(weights), options().weight_filler()}};
    if (options().bias_term()) {
      params.push_back({Shape{options().num_output()}, options().bias_filler()});
    }
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const ops::ConvGeometry geometry = Geometry(graph.shape(graph.bottom(0)));
    for (int i = 0; i < graph.num_bottoms(); ++i) {
      Value* x = FoldedInput(graph, "x", i, graph.bottom(i));
      Value* y = FoldedOutput(graph, "y", i, graph.top(i));
      if (options().bias_term()) {
        Value* sums = graph.Scratch(StrCat("sums", i), graph.shape(y));
        graph.Emit(ops::ConvGradData{geometry, Choice(kGradData)}, {x, graph.param(0)}, {sums});
        graph.Emit(ops::AddBias{kChannels}, {sums, graph.param(1)}, {y});
      } else {
        graph.Emit(ops::ConvGradData{geometry, Choice(kGradData)}, {x, graph.param(0)}, {y});
      }
      FinishOutput(graph, y, graph.top(i));
    }
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const ops::ConvGeometry geometry = Geometry(graph.shape(graph.bottom(0)));
    for (int i = 0; i < graph.num_bottoms(); ++i) {
      Value* dy = FoldedInput(graph, "dy", i, graph.top_diff(i));
      Value* x = FoldedInput(graph, "dx_x", i, graph.bottom(i));
      graph.Emit(ops::ConvGradWeights{geometry, Choice(kGradWeights)}, {dy, x},
                 {graph.param_diff(0)});
      if (options().bias_term()) {
        graph.Emit(ops::SumToAxes{kChannels}, {dy}, {graph.param_diff(1)});
      }
      if (!graph.wants_bottom_diff(i)) continue;
      Value* dx = FoldedOutput(graph, "dx", i, graph.bottom_diff(i));
      graph.Emit(ops::Conv{.geometry = geometry, .choice = Choice(kForward)}, {dy, graph.param(0)},
                 {dx});
      FinishOutput(graph, dx, graph.bottom_diff(i));
    }
  }

 private:
  static constexpr ops::BroadcastAxes kChannels{.axis = 1, .num_axes = 1};
};

REGISTER_LAYER_CLASS(Deconvolution, "convolution_param");

}  // namespace
}  // namespace caffe
