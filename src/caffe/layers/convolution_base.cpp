#include "caffe/layers/convolution_base.hpp"

#include <algorithm>
#include <sstream>

#include "caffe/error.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// One value for all spatial axes, or one per axis; `fallback` if none is given.
std::vector<int64_t> PerAxis(const char* field,
                             const google::protobuf::RepeatedField<uint32_t>& values,
                             int spatial_axes, int64_t fallback) {
  if (values.empty()) return std::vector<int64_t>(spatial_axes, fallback);
  if (values.size() == 1) return std::vector<int64_t>(spatial_axes, values[0]);
  Require(values.size() == spatial_axes, field, " is given ", values.size(), " times for ",
          spatial_axes, " spatial axes; give it once or once per axis");
  return {values.begin(), values.end()};
}

void CheckPairs(const char* what, bool has_h, bool has_w, int repeated) {
  Require(has_h == has_w, what, "_h and ", what, "_w must be given together");
  Require(!has_h || repeated == 0, "has both ", what, "_h/", what,
          "_w and the repeated form; give one of the two");
}

bool HasPadPair(const ConvolutionParameter& options) {
  return options.has_pad_h() || options.has_pad_w();
}

// "forward,gradient of data,gradient of weights", each -1 or a number.
std::array<int, 3> ParseAlgorithms(const std::string& text) {
  std::array<int, 3> numbers{};
  char first = 0, second = 0;
  std::istringstream stream(text);
  stream >> numbers[0] >> first >> numbers[1] >> second >> numbers[2];
  const bool is_whole =
      !stream.fail() && (stream >> std::ws).eof() && first == ',' && second == ',';
  Require(is_whole && *std::min_element(numbers.begin(), numbers.end()) >= -1,
          "conv_algos_override is '", text, "'; give three numbers of -1 or more: \"-1,-1,-1\"");
  return numbers;
}

}  // namespace

ConvolutionBase::ConvolutionBase(const LayerParameter& param)
    : Layer(param),
      options_(param.convolution_param()),
      algorithms_(ParseAlgorithms(options_.conv_algos_override())) {
  Require(param.cudnn_math_override() >= -1 && param.cudnn_math_override() <= 1,
          "cudnn_math_override is ", param.cudnn_math_override(), "; use -1, 0 or 1");
  Require(!options_.has_hole() && !options_.has_hole_h() && !options_.has_hole_w(),
          "hole, hole_h and hole_w are older names, which are read in files; write dilation");
  CheckPairs("kernel", options_.has_kernel_h(), options_.has_kernel_w(),
             options_.kernel_size_size());
  CheckPairs("stride", options_.has_stride_h(), options_.has_stride_w(), options_.stride_size());
  // Each may be omitted: the default is 0.
  CheckPairs("pad", HasPadPair(options_), HasPadPair(options_), options_.pad_size());
  Require(options_.kernel_size_size() > 0 || options_.has_kernel_h(),
          "kernel_size is missing; set convolution_param { kernel_size }");
}

void ConvolutionBase::CheckOutputs() const {
  Require(options_.num_output() > 0, "num_output is ", options_.num_output(),
          "; set convolution_param { num_output } to at least 1");
  Require(options_.group() > 0 && options_.num_output() % options_.group() == 0, "num_output ",
          options_.num_output(), " is not divisible by group ", options_.group());
}

void ConvolutionBase::CheckGroups(const ops::ConvGeometry& geometry, const Shape& bottom) const {
  const int64_t channels = bottom[ChannelAxis(bottom)];
  Require(geometry.group > 0, "bottom of shape ", bottom, " has ", channels,
          " channels; there must be at least 1 for a group each");
  Require(channels % geometry.group == 0, channels, " input channels are not divisible by group ",
          geometry.group, "; choose a group that divides both them and num_output");
  Require(options_.num_output() % geometry.group == 0, "num_output ", options_.num_output(),
          " is not divisible by the ", geometry.group, " groups, one for each of the ", channels,
          " input channels");
}

void ConvolutionBase::CheckEqual(const std::vector<Shape>& bottoms) {
  for (const Shape& bottom : bottoms) {
    Require(bottom == bottoms[0], "bottoms of shapes ", bottoms[0], " and ", bottom,
            " cannot share one convolution; they must be equal");
  }
}

ops::ConvGeometry ConvolutionBase::Geometry(const Shape& bottom) const {
  const int axes = bottom.num_axes() - ChannelAxis(bottom) - 1;
  Require(axes >= 1, "shape ", bottom, " has no spatial axis after the channel axis ",
          ChannelAxis(bottom));
  ops::ConvGeometry geometry{.kernel = PerAxis("kernel_size", options_.kernel_size(), axes, 0),
                             .stride = PerAxis("stride", options_.stride(), axes, 1),
                             .pad = PerAxis("pad", options_.pad(), axes, 0),
                             .dilation = PerAxis("dilation", options_.dilation(), axes, 1),
                             .group = Groups(bottom)};
  const bool has_pairs = options_.has_kernel_h() || options_.has_stride_h() || HasPadPair(options_);
  Require(!has_pairs || axes == 2, "the _h and _w fields are for 2 spatial axes, shape ", bottom,
          " has ", axes);
  if (options_.has_kernel_h()) geometry.kernel = {options_.kernel_h(), options_.kernel_w()};
  if (options_.has_stride_h()) geometry.stride = {options_.stride_h(), options_.stride_w()};
  if (HasPadPair(options_)) geometry.pad = {options_.pad_h(), options_.pad_w()};
  geometry.Check();
  return geometry;
}

ops::ConvChoice ConvolutionBase::Choice(Pass pass) const {
  return {.algorithm = algorithms_[pass],
          .math = param().cudnn_math_override(),
          .is_measured = options_.cudnn_convolution_algo_seeker() != ConvolutionParameter::GET};
}

Shape ConvolutionBase::Folded(const Shape& shape) const {
  const int axis = ChannelAxis(shape);
  std::vector<int64_t> dims = {shape.count(0, axis)};
  dims.insert(dims.end(), shape.dims().begin() + axis, shape.dims().end());
  return Shape(dims);
}

Value* ConvolutionBase::FoldedInput(GraphBuilder& graph, const std::string& name, int i,
                                    Value* value) const {
  if (ChannelAxis(graph.shape(value)) == 1) return value;
  Value* folded = graph.Scratch(StrCat(name, i), Folded(graph.shape(value)));
  graph.Emit(ops::View{}, {value}, {folded});
  return folded;
}

Value* ConvolutionBase::FoldedOutput(GraphBuilder& graph, const std::string& name, int i,
                                     Value* value) const {
  if (ChannelAxis(graph.shape(value)) == 1) return value;
  return graph.Scratch(StrCat(name, i), Folded(graph.shape(value)));
}

void ConvolutionBase::FinishOutput(GraphBuilder& graph, Value* folded, Value* value) {
  if (folded != value) graph.Emit(ops::View{}, {folded}, {value});
}

}  // namespace caffe
