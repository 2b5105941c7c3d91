#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/convolution_base.hpp"

namespace caffe {

ConvolutionLayer::ConvolutionLayer(const LayerParameter& param) : ConvolutionBase(param) {
  CheckOutputs();
}

std::vector<Shape> ConvolutionLayer::InferTopShapes(const std::vector<Shape>& bottoms) const {
  CheckEqual(bottoms);
  const Shape& bottom = bottoms[0];
  const ops::ConvGeometry geometry = Geometry(bottom);
  const int axis = ChannelAxis(bottom);
  CheckGroups(geometry, bottom);
  std::vector<int64_t> top(bottom.dims().begin(), bottom.dims().begin() + axis);
  top.push_back(options().num_output());
  for (int i = 0; i < geometry.spatial_axes(); ++i) {
    top.push_back(geometry.OutputSize(i, bottom[axis + 1 + i]));
  }
  return std::vector<Shape>(bottoms.size(), Shape(top));
}

std::vector<ParamDeclaration> ConvolutionLayer::Params(const std::vector<Shape>& bottoms) const {
  const ops::ConvGeometry geometry = Geometry(bottoms[0]);
  std::vector<int64_t> weights = {options().num_output(),
                                  bottoms[0][ChannelAxis(bottoms[0])] / geometry.group};
  weights.insert(weights.end(), geometry.kernel.begin(), geometry.kernel.end());
  std::vector<ParamDeclaration> params = {{Shape(weights), options().weight_filler()}};
  if (options().bias_term()) {
    params.push_back({Shape{options().num_output()}, options().bias_filler()});
  }
  return params;
}

void ConvolutionLayer::EmitForward(GraphBuilder& graph) const {
  const ops::ConvGeometry geometry = Geometry(graph.shape(graph.bottom(0)));
  for (int i = 0; i < graph.num_bottoms(); ++i) {
    Value* y = FoldedOutput(graph, "y", i, graph.top(i));
    std::vector<Value*> inputs = {FoldedInput(graph, "x", i, graph.bottom(i)), graph.param(0)};
    if (options().bias_term()) inputs.push_back(graph.param(1));
    graph.Emit(ops::Conv{.geometry = geometry, .choice = Choice(kForward)}, inputs, {y});
    FinishOutput(graph, y, graph.top(i));
  }
}

void ConvolutionLayer::EmitBackward(GraphBuilder& graph) const {
  const ops::ConvGeometry geometry = Geometry(graph.shape(graph.bottom(0)));
  for (int i = 0; i < graph.num_bottoms(); ++i) {
    Value* dy = FoldedInput(graph, "dy", i, graph.top_diff(i));
    Value* x = FoldedInput(graph, "dx_x", i, graph.bottom(i));
    std::vector<Value*> parameter_grads = {graph.param_diff(0)};
    if (options().bias_term()) parameter_grads.push_back(graph.param_diff(1));
    graph.Emit(ops::ConvGradWeights{geometry, Choice(kGradWeights)}, {x, dy}, parameter_grads);
    if (!graph.wants_bottom_diff(i)) continue;
    Value* dx = FoldedOutput(graph, "dx", i, graph.bottom_diff(i));
    graph.Emit(ops::ConvGradData{geometry, Choice(kGradData)}, {dy, graph.param(0)}, {dx});
    FinishOutput(graph, dx, graph.bottom_diff(i));
  }
}

namespace {
REGISTER_LAYER_CLASS(Convolution);
}  // namespace

}  // namespace caffe
