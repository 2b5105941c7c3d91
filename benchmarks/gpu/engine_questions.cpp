#include "engine_questions.hpp"

#include <utility>

#include "caffe/error.hpp"

namespace engine_lab {

std::vector<int64_t> ChannelsLast(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t step = strides[1] = 1;
  step *= dims[1];
  for (size_t axis = dims.size(); --axis > 1;) {
    strides[axis] = step;
    step *= dims[axis];
  }
  strides[0] = step;
  return strides;
}

namespace {

struct ForwardParts {
  bool sums = false;      // sums of y and its squares, for the normalization that follows
  bool prologue = false;  // scale, shift and ReLU on x, of the normalization before
  bool bias_and_relu = false;
};

void Forward(Problem& problem, ForwardParts parts) {
  using Mode = fe::PointwiseMode_t;
  const Geometry& g = problem.geometry();
  CudnnTensor x = problem.In(kX, g.X());
  if (parts.prologue) {
    x = problem.Step(x, problem.ChannelsIn(kScale, g.c), Mode::MUL);
    x->set_data_type(fe::DataType_t::FLOAT);
    x = problem.Step(x, problem.ChannelsIn(kBias, g.c), Mode::ADD);
    x->set_data_type(fe::DataType_t::FLOAT);
    x = problem.graph().pointwise(x, fe::graph::Pointwise_attributes().set_mode(Mode::RELU_FWD));
    x->set_data_type(CudnnType(g.type));
  }
  CudnnTensor y = problem.graph().conv_fprop(x, problem.In(kW, g.W()),
                                             g.Window<fe::graph::Conv_fprop_attributes>());
  if (parts.bias_and_relu) {
    y = problem.Step(y, problem.ChannelsIn(kBias, g.k), Mode::ADD);
    y = problem.graph().pointwise(y, fe::graph::Pointwise_attributes().set_mode(Mode::RELU_FWD));
  }
  problem.Out(kY, y, g.Y(), g.type);
  if (!parts.sums) return;
  problem.SumOut(kSum, y, g.k);
  const CudnnTensor squares = problem.Step(y, y, Mode::MUL);
  squares->set_data_type(fe::DataType_t::FLOAT);
  problem.SumOut(kDot, squares, g.k);
}

struct DataGradientParts {
  bool add = false;   // add the other branch's gradient
  bool relu = false;  // apply the gradient of a ReLU, given its result
  bool sums = false;  // sums of dz and dz * x, for the gradient of the normalization
};

void DataGradient(Problem& problem, DataGradientParts parts) {
  using Mode = fe::PointwiseMode_t;
  const Geometry& g = problem.geometry();
  CudnnTensor dx = problem.graph().conv_dgrad(problem.In(kY, g.Y()), problem.In(kW, g.W()),
                                              g.Window<fe::graph::Conv_dgrad_attributes>());
  dx->set_dim(g.X()).set_stride(ChannelsLast(g.X()));
  if (parts.add) dx = problem.Step(dx, problem.In(kAddend, g.X()), Mode::ADD);
  if (parts.relu) dx = problem.Step(dx, problem.In(kReluResult, g.X()), Mode::RELU_BWD);
  problem.Out(kX, dx, g.X(), g.type);
  if (!parts.sums) return;
  problem.SumOut(kSum, dx, g.c);
  const CudnnTensor dot = problem.Step(dx, problem.In(kNormInput, g.X()), Mode::MUL);
  dot->set_data_type(fe::DataType_t::FLOAT);
  problem.SumOut(kDot, dot, g.c);
}

void WeightGradient(Problem& problem, DType type) {
  const Geometry& g = problem.geometry();
  const CudnnTensor dw = problem.graph().conv_wgrad(problem.In(kY, g.Y()), problem.In(kX, g.X()),
                                                    g.Window<fe::graph::Conv_wgrad_attributes>());
  problem.Out(kW, dw, g.W(), type);
}

std::string NameOf(const std::string& what, const Geometry& g) {
  std::string name = caffe::StrCat(what, " ", g.kernel, "x", g.kernel, g.depth > 0 ? "xdepth" : "",
                                   g.stride > 1 ? caffe::StrCat("/", g.stride) : "", " ", g.c, ">",
                                   g.k, "@", g.size, g.group > 1 ? " depthwise" : "");
  return name + (g.type == DType::kBFloat16 ? "" : caffe::StrCat(" ", caffe::Name(g.type)));
}

class Questions {
 public:
  std::vector<Question> all;

  void AskForward(const Geometry& g, ForwardParts parts = {}) {
    const bool is_plain = !parts.sums && !parts.prologue && !parts.bias_and_relu;
    const std::string what =
        caffe::StrCat(parts.prologue ? "scale+relu+" : "", "forward",
                      parts.bias_and_relu ? "+bias+relu" : "", parts.sums ? "+sums" : "");
    all.push_back({NameOf(what, g), g, [parts](Problem& p) { Forward(p, parts); },
                   is_plain || parts.prologue || parts.bias_and_relu
                       ? Describe{}
                       : [](Problem& p) { Forward(p, {}); }});
  }
  void AskDataGradient(const Geometry& g, DataGradientParts parts = {}) {
    const bool is_plain = !parts.add && !parts.relu && !parts.sums;
    const std::string what = caffe::StrCat("dgrad", parts.add ? "+add" : "",
                                           parts.relu ? "+relu" : "", parts.sums ? "+sums" : "");
    all.push_back({NameOf(what, g), g, [parts](Problem& p) { DataGradient(p, parts); },
                   is_plain ? Describe{} : [](Problem& p) { DataGradient(p, {}); }});
  }
  void AskWeightGradient(const Geometry& g, DType type) {
    const std::string what = type == DType::kFloat ? "wgrad to float" : "wgrad";
    all.push_back({NameOf(what, g), g, [type](Problem& p) { WeightGradient(p, type); }, {}});
  }
};

}  // namespace

std::vector<Question> AllQuestions() {
  Questions ask;
  const DType bf16 = DType::kBFloat16, fp16 = DType::kFloat16;
  // The first layer on 3 channels, on padded channels, and on blocks of 2 x 2 pixels (16 channels).
  for (const Geometry& g : {Geometry{256, 3, 64, 224, 7, 2, 3},
                            {256, 4, 64, 224, 7, 2, 3},
                            {256, 8, 64, 224, 7, 2, 3},
                            {256, 16, 64, 115, 4, 1, 0}}) {
    ask.AskForward(g);
    ask.AskForward(g, {.sums = true});
    ask.AskWeightGradient(g, bf16);
  }
  // MobileNet-v2's depthwise convolutions.
  for (const DType type : {bf16, fp16}) {
    for (Geometry g :
         {Geometry{256, 144, 144, 56, 3, 1, 1, 144}, {256, 192, 192, 28, 3, 2, 1, 192}}) {
      g.type = type;
      ask.AskForward(g);
      ask.AskForward(g, {.bias_and_relu = true});
      ask.AskDataGradient(g);
      ask.AskWeightGradient(g, type);
    }
  }
  // C3D's second layer.
  const Geometry cube{16, 64, 128, 56, 3, 1, 1, 1, 16};
  ask.AskForward(cube);
  ask.AskDataGradient(cube);
  ask.AskWeightGradient(cube, bf16);
  // At the start of a block the gradient of its first convolution is added to the shortcut's.
  const Geometry block_inputs[] = {
      {256, 256, 64, 56}, {256, 512, 128, 28}, {256, 1024, 256, 14}, {256, 2048, 512, 7}};
  for (const Geometry& g : block_inputs) ask.AskDataGradient(g, {.add = true, .relu = true});
  for (const Geometry& g : block_inputs)
    ask.AskDataGradient(g, {.add = true, .relu = true, .sums = true});
  const Geometry strided[] = {{256, 256, 128, 56, 1, 2}, {256, 512, 256, 28, 1, 2}};
  for (const Geometry& g : strided) {
    ask.AskDataGradient(g, {.add = true, .relu = true});
    ask.AskDataGradient(g, {.add = true, .relu = true, .sums = true});
  }
  const Geometry within[] = {{256, 64, 64, 56, 3, 1, 1}, {256, 256, 256, 14, 3, 1, 1}};
  for (const Geometry& g : within) {
    ask.AskDataGradient(g);
    ask.AskDataGradient(g, {.relu = true, .sums = true});
    ask.AskForward(g);
    ask.AskForward(g, {.sums = true});
  }
  for (const Geometry& g : {Geometry{256, 64, 256, 56}, {256, 512, 128, 28}}) {
    ask.AskForward(g);
    ask.AskForward(g, {.sums = true});
    ask.AskForward(g, {.sums = true, .prologue = true});
  }
  for (const Geometry& g : {Geometry{256, 64, 64, 56, 3, 1, 1},
                            {256, 128, 128, 28, 3, 1, 1},
                            {256, 256, 256, 14, 3, 1, 1},
                            {256, 512, 512, 7, 3, 1, 1}}) {
    ask.AskWeightGradient(g, bf16);
    ask.AskWeightGradient(g, DType::kFloat);
  }
  ask.AskWeightGradient({256, 256, 64, 56}, bf16);
  return std::move(ask.all);
}

}  // namespace engine_lab
