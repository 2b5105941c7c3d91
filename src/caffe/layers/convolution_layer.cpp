#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// One value for all spatial axes, or one each; `fallback` when none is given.
std::vector<int64_t> PerAxis(const char* field,
                             const google::protobuf::RepeatedField<uint32_t>& values,
                             int spatial_axes, int64_t fallback) {
  if (values.empty()) return std::vector<int64_t>(spatial_axes, fallback);
  if (values.size() == 1) return std::vector<int64_t>(spatial_axes, values[0]);
  Require(values.size() == spatial_axes, field, " is given ", values.size(), " times for ",
          spatial_axes, " spatial axes; give it once or once per axis");
  return {values.begin(), values.end()};
}

// Convolution over the axes after the channel axis `axis`; all axes before it are batch. Several
// bottoms share the weights.
class ConvolutionLayer final : public Layer {
 public:
  explicit ConvolutionLayer(const LayerParameter& param)
      : Layer(param), options_(param.convolution_param()) {
    Require(options_.num_output() > 0, "num_output is ", options_.num_output(),
            "; set convolution_param { num_output } to at least 1");
    Require(options_.group() > 0 && options_.num_output() % options_.group() == 0, "num_output ",
            options_.num_output(), " is not divisible by group ", options_.group());
    CheckPairs("kernel", options_.has_kernel_h(), options_.has_kernel_w(),
               options_.kernel_size_size());
    CheckPairs("stride", options_.has_stride_h(), options_.has_stride_w(), options_.stride_size());
    // Either may be left out: their default is 0.
    CheckPairs("pad", has_pad_pair(), has_pad_pair(), options_.pad_size());
    Require(options_.kernel_size_size() > 0 || options_.has_kernel_h(),
            "kernel_size is missing; set convolution_param { kernel_size }");
  }

  LayerTraits traits() const override { return {.min_bottoms = 1, .equal_bottoms_and_tops = true}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const ops::ConvGeometry geometry = Geometry(bottoms[0]);
    const int axis = ChannelAxis(bottoms[0]);
    const int64_t channels = bottoms[0][axis];
    Require(channels % geometry.group == 0, channels, " input channels are not divisible by group ",
            geometry.group);
    std::vector<Shape> tops;
    for (const Shape& bottom : bottoms) {
      Require(bottom == bottoms[0], "bottoms of shapes ", bottoms[0], " and ", bottom,
              " cannot share one convolution; they must be equal");
      std::vector<int64_t> top(bottom.dims().begin(), bottom.dims().begin() + axis);
      top.push_back(options_.num_output());
      for (int i = 0; i < geometry.spatial_axes(); ++i) {
        top.push_back(geometry.OutputSize(i, bottom[axis + 1 + i]));
      }
      tops.emplace_back(std::move(top));
    }
    return tops;
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const ops::ConvGeometry geometry = Geometry(bottoms[0]);
    std::vector<int64_t> weights = {options_.num_output(),
                                    bottoms[0][ChannelAxis(bottoms[0])] / geometry.group};
    weights.insert(weights.end(), geometry.kernel.begin(), geometry.kernel.end());
    std::vector<ParamDeclaration> params = {{Shape(weights), options_.weight_filler()}};
    if (options_.bias_term())
      params.push_back({Shape{options_.num_output()}, options_.bias_filler()});
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const ops::ConvGeometry geometry = Geometry(graph.shape(graph.bottom(0)));
    for (int i = 0; i < graph.num_bottoms(); ++i) {
      Value* y = FoldedOutput(graph, "y", i, graph.top(i));
      std::vector<Value*> inputs = {FoldedInput(graph, "x", i, graph.bottom(i)), graph.param(0)};
      if (options_.bias_term()) inputs.push_back(graph.param(1));
      graph.Emit(ops::Conv{.geometry = geometry}, inputs, {y});
      if (y != graph.top(i)) graph.Emit(ops::View{}, {y}, {graph.top(i)});
    }
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const ops::ConvGeometry geometry = Geometry(graph.shape(graph.bottom(0)));
    for (int i = 0; i < graph.num_bottoms(); ++i) {
      Value* dy = FoldedInput(graph, "dy", i, graph.top_diff(i));
      Value* x = FoldedInput(graph, "dx_x", i, graph.bottom(i));
      std::vector<Value*> parameter_grads = {graph.param_diff(0)};
      if (options_.bias_term()) parameter_grads.push_back(graph.param_diff(1));
      graph.Emit(ops::ConvGradWeights{geometry}, {x, dy}, parameter_grads);
      if (!graph.wants_bottom_diff(i)) continue;
      Value* dx = FoldedOutput(graph, "dx", i, graph.bottom_diff(i));
      graph.Emit(ops::ConvGradData{geometry}, {dy, graph.param(0)}, {dx});
      if (dx != graph.bottom_diff(i)) graph.Emit(ops::View{}, {dx}, {graph.bottom_diff(i)});
    }
  }

 private:
  bool has_pad_pair() const { return options_.has_pad_h() || options_.has_pad_w(); }

  static void CheckPairs(const char* what, bool has_h, bool has_w, int repeated) {
    Require(has_h == has_w, what, "_h and ", what, "_w must be given together");
    Require(!has_h || repeated == 0, "has both ", what, "_h/", what,
            "_w and the repeated form; give one of the two");
  }

  int ChannelAxis(const Shape& bottom) const { return bottom.CanonicalAxis(options_.axis()); }

  ops::ConvGeometry Geometry(const Shape& bottom) const {
    const int axes = bottom.num_axes() - ChannelAxis(bottom) - 1;
    Require(axes >= 1, "shape ", bottom, " has no spatial axis after the channel axis ",
            ChannelAxis(bottom));
    ops::ConvGeometry geometry{.kernel = PerAxis("kernel_size", options_.kernel_size(), axes, 0),
                               .stride = PerAxis("stride", options_.stride(), axes, 1),
                               .pad = PerAxis("pad", options_.pad(), axes, 0),
                               .dilation = PerAxis("dilation", options_.dilation(), axes, 1),
                               .group = options_.group()};
    const bool has_pairs = options_.has_kernel_h() || options_.has_stride_h() || has_pad_pair();
    Require(!has_pairs || axes == 2, "the _h and _w fields are for 2 spatial axes, shape ", bottom,
            " has ", axes);
    if (options_.has_kernel_h()) geometry.kernel = {options_.kernel_h(), options_.kernel_w()};
    if (options_.has_stride_h()) geometry.stride = {options_.stride_h(), options_.stride_w()};
    if (has_pad_pair()) geometry.pad = {options_.pad_h(), options_.pad_w()};
    for (int i = 0; i < axes; ++i) {
      Require(geometry.kernel[i] > 0, "kernel_size must be at least 1, got ", geometry.kernel[i]);
      Require(geometry.stride[i] > 0, "stride must be at least 1, got ", geometry.stride[i]);
      Require(geometry.dilation[i] > 0, "dilation must be at least 1, got ", geometry.dilation[i]);
    }
    return geometry;
  }

  // With a channel axis other than 1, the axes before it are seen as one batch axis.
  Shape Folded(const Shape& shape) const {
    const int axis = ChannelAxis(shape);
    std::vector<int64_t> dims = {shape.count(0, axis)};
    dims.insert(dims.end(), shape.dims().begin() + axis, shape.dims().end());
    return Shape(dims);
  }

  Value* FoldedInput(GraphBuilder& graph, const std::string& name, int i, Value* value) const {
    if (ChannelAxis(graph.shape(value)) == 1) return value;
    Value* folded = graph.Scratch(StrCat(name, i), Folded(graph.shape(value)));
    graph.Emit(ops::View{}, {value}, {folded});
    return folded;
  }

  Value* FoldedOutput(GraphBuilder& graph, const std::string& name, int i, Value* value) const {
    if (ChannelAxis(graph.shape(value)) == 1) return value;
    return graph.Scratch(StrCat(name, i), Folded(graph.shape(value)));
  }

  const ConvolutionParameter options_;
};

REGISTER_LAYER_CLASS(Convolution);

}  // namespace
}  // namespace caffe
