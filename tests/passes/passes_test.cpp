// The effect of the optimising passes on a graph; they do not change the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "caffe/blob.hpp"
#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/printer.hpp"
#include "caffe/graph/verifier.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/ops/pointwise.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::CountOps;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kData[] = R"(
  layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 4 dim: 3 dim: 12 dim: 12 } } }
  layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 4 } } }
)";

constexpr char kLossLayers[] = R"(
  layer { name: 'ip' type: 'InnerProduct' bottom: 'last' top: 'ip'
    inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } }
  layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }
)";

std::string ConvOf(
    const std::string& name, const std::string& bottom, const std::string& top,
    const std::string& options = "bias_term: true bias_filler { type: 'constant' value: 0.1 }") {
  return "layer { name: '" + name + "' type: 'Convolution' bottom: '" + bottom + "' top: '" + top +
         "' convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: 'msra' "
         "} " +
         options + " } }\n";
}

std::string Unary(const std::string& type, const std::string& name, const std::string& bottom,
                  const std::string& top, const std::string& options = "") {
  return "layer { name: '" + name + "' type: '" + type + "' bottom: '" + bottom + "' top: '" + top +
         "' " + options + " }\n";
}

constexpr char kScaleBias[] =
    "scale_param { bias_term: true filler { value: 0.8 } bias_filler { value: 0.2 } }";
constexpr char kMaxPool[] = "pooling_param { pool: MAX kernel_size: 2 stride: 2 }";

std::string ConvRelu() {
  return ConvOf("conv", "data", "conv") + Unary("ReLU", "relu", "conv", "conv") +
         Unary("Pooling", "pool", "conv", "last", kMaxPool);
}

std::string LeNetLike() {
  return ConvOf("conv1", "data", "conv1") + Unary("Pooling", "pool1", "conv1", "pool1", kMaxPool) +
         ConvOf("conv2", "pool1", "conv2") + Unary("Pooling", "pool2", "conv2", "pool2", kMaxPool) +
         Unary("InnerProduct", "ip1", "pool2", "ip1",
               "inner_product_param { num_output: 20 weight_filler { type: 'xavier' } }") +
         Unary("ReLU", "relu1", "ip1", "ip1") + Unary("Dropout", "drop", "ip1", "last");
}

std::string NormScaleRelu(const std::string& name, const std::string& blob) {
  return Unary("BatchNorm", name + "_bn", blob, blob) +
         Unary("Scale", name + "_scale", blob, blob, kScaleBias) +
         Unary("ReLU", name + "_relu", blob, blob);
}

std::string Residual() {
  const std::string no_bias = "bias_term: false";
  return ConvOf("stem", "data", "stem", no_bias) + NormScaleRelu("stem", "stem") +
         ConvOf("a", "stem", "a", no_bias) + NormScaleRelu("a", "a") +
         ConvOf("b", "a", "b", no_bias) + Unary("BatchNorm", "b_bn", "b", "b") +
         Unary("Scale", "b_scale", "b", "b", kScaleBias) +
         "layer { name: 'sum' type: 'Eltwise' bottom: 'stem' bottom: 'b' top: 'sum' }\n" +
         Unary("ReLU", "sum_relu", "sum", "sum") +
         Unary("Pooling", "pool", "sum", "last",
               "pooling_param { pool: AVE global_pooling: true }");
}

std::string Branches() {
  return ConvOf("a", "data", "a") + ConvOf("b", "data", "b") +
         "layer { name: 'sum' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 'sum' eltwise_param { "
         "coeff: 1 coeff: -0.5 } }\n" +
         Unary("ReLU", "relu", "sum", "r") + Unary("LRN", "norm", "r", "n") +
         "layer { name: 'cat' type: 'Concat' bottom: 'n' bottom: 'a' bottom: 'b' top: 'cat' }\n" +
         "layer { name: 'cut' type: 'Slice' bottom: 'cat' top: 's0' top: 's1' top: 'unused' "
         "slice_param { slice_point: 5 "
         "slice_point: 13 } }\n" +
         "layer { name: 'quiet' type: 'Silence' bottom: 'unused' }\n" +
         Unary("Pooling", "p0", "s0", "p0", kMaxPool) +
         Unary("Pooling", "p1", "s1", "p1", kMaxPool) + Unary("Flatten", "f0", "p0", "f0") +
         Unary("Flatten", "f1", "p1", "f1") +
         "layer { name: 'cat2' type: 'Concat' bottom: 'f0' bottom: 'f1' top: 'last' }\n";
}

std::unique_ptr<Net> MakeNetOf(const std::string& body, NetOptions options,
                               const std::string& header = "", Phase phase = TRAIN) {
  NetParameter param;
  ParseTextProto("name: 'net' " + header + kData + body + kLossLayers, "test", &param);
  param.mutable_state()->set_phase(phase);
  options.seed = 11;
  return std::make_unique<Net>(param, options);
}

std::unique_ptr<Net> Reusing(const std::string& body, std::vector<std::string> disabled = {},
                             const std::string& header = "", Phase phase = TRAIN) {
  const NetOptions options{
      .keep_all = false, .with_backward = phase == TRAIN, .disabled_passes = std::move(disabled)};
  return MakeNetOf(body, options, header, phase);
}

std::string Printed(const Net& net) {
  return PrintGraph(net.graph());
}

// The schedule without parts that depend on the machine or the numbering: kernels, places, ids.
std::string ScheduleOf(const Net& net) {
  std::string text;
  for (const Node* node : net.graph().ScheduledNodes()) {
    const Value& output = *node->outputs[0];
    text += StrCat(output.name, " = ", node->op.name());
    if (const std::string attributes = node->op.Attributes(); !attributes.empty())
      text += "[" + attributes + "]";
    std::string inputs;
    for (const Value* input : node->inputs)
      inputs += StrCat(inputs.empty() ? "" : ", ", input ? input->name : "-");
    text += StrCat("(", inputs, ") ", Name(output.desc.dtype), " ", Name(output.desc.layout), "\n");
  }
  return text;
}

// Loss and parameter gradients of one pass.
struct Step {
  float loss = 0;
  std::map<std::string, std::vector<float>> gradients;
};

Step RunStep(Net& net) {
  Blob& data = *net.blob_by_name("data");
  for (int64_t i = 0; i < data.count(); ++i) {
    data.mutable_cpu_data()[i] = 2 * ToUniform(RandomStream(4, 1).Bits(i)) - 1;
  }
  Blob& label = *net.blob_by_name("label");
  for (int64_t i = 0; i < label.count(); ++i)
    label.mutable_cpu_data()[i] = static_cast<float>(i % 5);
  net.ClearParamDiffs();
  Step step;
  step.loss = net.ForwardBackward();
  for (const Net::LearnableParam& param : net.learnable_params()) {
    if (!param.has_gradient) continue;
    const float* diff = param.blob->cpu_diff();
    step.gradients[param.name].assign(diff, diff + param.blob->count());
  }
  return step;
}

void ExpectSameStep(const Step& got, const Step& want, double tolerance) {
  EXPECT_NEAR(got.loss, want.loss, tolerance * want.loss);
  ASSERT_EQ(got.gradients.size(), want.gradients.size());
  for (const auto& [name, values] : want.gradients) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 0) << name;
    const std::vector<float>& other = got.gradients.at(name);
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i)
      worst = std::max<double>(worst, std::abs(other[i] - values[i]));
    EXPECT_LE(worst, tolerance * largest) << name;
  }
}

// The constants below are the compiler's results for a convolution, a ReLU and a loss.
constexpr char kUnfused[] =
    "data:channels-last = Reorder(data) float channels-last\n"
    "conv = Conv[kernel 3x3, pad 1x1](data:channels-last, conv.0, conv.1) float channels-last\n"
    "conv = Relu(conv) float channels-last\n"
    "last = MaxPool[kernel 2x2, stride 2x2](conv) float channels-last\n"
    "last:plain = Reorder(last) float plain\n"
    "ip = Gemm[4x288 * 288x5(T)](last:plain, ip.0, ip.1) float plain\n"
    "loss/probabilities = Softmax[axis 1](ip) float plain\n"
    "loss = SoftmaxLoss(loss/probabilities, label) float plain\n";
constexpr char kFused[] =
    "data:channels-last = Reorder(data) float channels-last\n"
    "conv = Conv[kernel 3x3, pad 1x1, relu](data:channels-last, conv.0, conv.1) float "
    "channels-last\n"
    "last = MaxPool[kernel 2x2, stride 2x2](conv) float channels-last\n"
    "last:plain = Reorder(last) float plain\n"
    "ip = Gemm[4x288 * 288x5(T)](last:plain, ip.0, ip.1) float plain\n"
    "loss/probabilities = Softmax[axis 1](ip) float plain\n"
    "loss = SoftmaxLoss(loss/probabilities, label) float plain\n";
constexpr char kBFloat16[] =
    "conv.0:bfloat16 = Cast(conv.0) bfloat16 plain\n"
    "data:channels-last = Reorder(data) bfloat16 channels-last\n"
    "conv = Conv[kernel 3x3, pad 1x1, relu](data:channels-last, conv.0:bfloat16, conv.1) "
    "bfloat16 "
    "channels-last\n"
    "last = MaxPool[kernel 2x2, stride 2x2](conv) bfloat16 channels-last\n"
    "ip.0:bfloat16 = Cast(ip.0) bfloat16 plain\n"
    "last:plain = Reorder(last) bfloat16 plain\n"
    "ip = Gemm[4x288 * 288x5(T)](last:plain, ip.0:bfloat16, ip.1) float plain\n"
    "loss/probabilities = Softmax[axis 1](ip) float plain\n"
    "loss = SoftmaxLoss(loss/probabilities, label) float plain\n";

// Without packed weights, because they depend on the chosen kernels.
TEST(ScheduleTest, Text) {
  const auto schedule = [](std::vector<std::string> disabled, const std::string& types) {
    disabled.push_back("keep-weight-copies");
    return ScheduleOf(*Reusing(ConvRelu(), disabled, types, TEST));
  };
  EXPECT_EQ(schedule({"fuse-epilogues"}, ""), kUnfused);
  EXPECT_EQ(schedule({}, ""), kFused);
  EXPECT_EQ(schedule({}, "default_forward_type: BFLOAT16 "), kBFloat16);
}

TEST(InferShapesTest, RefusesATopInPlaceOfABottomWithAnotherShape) {
  NetParameter param;
  ParseTextProto(
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } } "
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'x' "
      "inner_product_param { num_output: 4 } }",
      "in place", &param);
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([&] { Net net(param); }),
              HasSubstr("layer 'ip' (InnerProduct): changes the shape of 'x' from 2x3 to 2x4 and "
                        "cannot run in place; give top another name"));
}

TEST(InferShapesTest, SaysThatAnInputHasNoShape) {
  const auto plan = [](const std::string& shape) {
    return ErrorText<InvalidArgument>([&] {
      testing::NetOf("layer { name: 'in' type: 'Input' top: 'x' " + shape +
                     " } layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'y' "
                     "convolution_param { num_output: 1 kernel_size: 3 } }");
    });
  };
  EXPECT_THAT(plan(""), HasSubstr("layer 'conv' (Convolution): its bottom 'x' is an input of the "
                                  "net and has no shape; give input_shape { dim: ... }"));
  EXPECT_THAT(plan("input_param { shape { dim: 2 } }"), Not(HasSubstr("has no shape")));
}

TEST(AssignPrecisionTest, LabelsAreExactInBFloat16) {
  // 300 classes: bfloat16 cannot represent label 299.
  NetParameter param;
  ParseTextProto(R"(
    default_forward_type: BFLOAT16
    layer { name: 'in' type: 'Input' top: 'scores' input_param { shape { dim: 1 dim: 300 } } }
    layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 1 dim: 1 } } }
    layer { name: 'flat' type: 'Flatten' bottom: 'label' top: 'flat' }
    layer { name: 'accuracy' type: 'Accuracy' bottom: 'scores' bottom: 'flat' top: 'accuracy' })",
                 "test", &param);
  param.mutable_state()->set_phase(TEST);
  for (const bool keep_all : {true, false}) {
    Net net(param, {.keep_all = keep_all, .with_backward = false});
    float* scores = net.blob_by_name("scores")->mutable_cpu_data();
    std::fill_n(scores, 300, 0.0f);
    scores[299] = 1;
    net.blob_by_name("label")->mutable_cpu_data()[0] = 299;
    net.Forward();
    EXPECT_EQ(net.blob_by_name("accuracy")->cpu_data()[0], 1) << PrintGraph(net.graph());
  }
}

TEST(AssignPrecisionTest, ScoresThatALossReadsAreStoredInFloat) {
  const auto type_of = [](const std::string& name, const std::string& own) {
    NetParameter param;
    ParseTextProto(StrCat(R"(
        default_forward_type: BFLOAT16 default_backward_type: BFLOAT16
        layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 } } }
        layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 2 } } }
        layer { name: 'ip1' type: 'InnerProduct' bottom: 'x' top: 'hidden'
                inner_product_param { num_output: 5 } }
        layer { name: 'relu' type: 'ReLU' bottom: 'hidden' top: 'relu' }
        layer { name: 'ip2' type: 'InnerProduct' bottom: 'relu' top: 'scores' )",
                          own, R"( inner_product_param { num_output: 3 } }
        layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'label' top: 'loss' })"),
                   "test", &param);
    const Net net(param);
    return net.graph().blobs.at(name)->desc.dtype;
  };
  EXPECT_EQ(type_of("hidden", ""), DType::kBFloat16);
  EXPECT_EQ(type_of("scores", ""), DType::kFloat);
  EXPECT_EQ(type_of("scores", "forward_type: BFLOAT16"), DType::kBFloat16);
}

TEST(StandardPassesTest, OnlyOptionalOnesCanBeDisabled) {
  for (const char* name : {"fuse-epilogue", "plan-memory"}) {
    EXPECT_THAT(
        ErrorText<InvalidArgument>([&] { Reusing(ConvRelu(), {name}); }),
        AllOf(HasSubstr(StrCat("'", name, "' is not a pass that can be disabled; those are: ",
                               "capture-graph, fold-constants, fuse, fuse-epilogues, ")),
              HasSubstr(", pair-convolutions, "), HasSubstr(", concat-in-place")));
  }
  EXPECT_NO_THROW(Reusing(ConvRelu(), {"capture-graph", "keep-weight-copies"}));
}

TEST(FuseEpiloguesTest, ReluJoinsTheConvolution) {
  const auto net = Reusing(ConvRelu());
  EXPECT_EQ(CountOps(*net, "Relu"), 0) << Printed(*net);
  EXPECT_THAT(Printed(*net), HasSubstr("relu"));
  EXPECT_EQ(CountOps(*Reusing(ConvRelu(), {"fuse-epilogues"}), "Relu"), 1);
  EXPECT_EQ(CountOps(*MakeNetOf(ConvRelu(), {}), "Relu"), 1) << "a keep-all net has all its blobs";
}

TEST(FuseEpiloguesTest, ScaleResidualAndReluJoinBatchNorm) {
  for (const Phase phase : {TRAIN, TEST}) {
    const auto net = Reusing(Residual(), {"fold-constants"}, "", phase);
    const std::string text = Printed(*net);
    EXPECT_EQ(CountOps(*net, "ScaleShift"), 0) << text;
    EXPECT_EQ(CountOps(*net, "Relu"), 0) << text;
    EXPECT_EQ(CountOps(*net, "EltwiseSum"), phase == TRAIN ? 1 : 0) << text;  // of gradients
    EXPECT_EQ(CountOps(*net, phase == TRAIN ? "BatchNorm" : "BatchNormInference"), 3) << text;
    if (phase == TRAIN) {
      EXPECT_EQ(CountOps(*net, "SumToAxes"), 1) << text;  // of the inner product's bias
      EXPECT_EQ(CountOps(*net, "ReluGrad"), 0) << text;
    }
  }
}

TEST(FuseEpiloguesTest, ABlobWithOtherReadersStays) {
  // Both the convolution's result and its ReLU are read.
  const std::string body =
      ConvOf("conv", "data", "conv") + Unary("ReLU", "relu", "conv", "r") +
      "layer { name: 'sum' type: 'Eltwise' bottom: 'conv' bottom: 'r' top: 'last' }\n";
  EXPECT_EQ(CountOps(*Reusing(body), "Relu"), 1);
}

TEST(InsertCastsTest, BFloat16ComputesInBFloat16AndLosesInFloat) {
  const std::string header = "default_forward_type: BFLOAT16 default_backward_type: BFLOAT16 ";
  const auto net = Reusing(LeNetLike(), {}, header);
  const std::string text = Printed(*net);
  EXPECT_GT(CountOps(*net, "Cast"), 0) << text;
  EXPECT_EQ(CountOps(*Reusing(LeNetLike()), "Cast"), 0);
  std::set<std::pair<const Value*, DType>> casts;
  for (const Node* node : net->graph().ScheduledNodes()) {
    if (node->op.name() == "Cast") {
      const bool is_first = casts.emplace(node->inputs[0], node->outputs[0]->desc.dtype).second;
      EXPECT_TRUE(is_first) << "cast twice: " << PrintNode(*node);
      EXPECT_NE(node->inputs[0]->desc.dtype, node->outputs[0]->desc.dtype) << PrintNode(*node);
    } else if (node->op.name() == "Conv") {
      EXPECT_EQ(node->outputs[0]->desc.dtype, DType::kBFloat16) << PrintNode(*node);
    } else if (node->op.name() == "SoftmaxLoss") {
      EXPECT_EQ(node->outputs[0]->desc.dtype, DType::kFloat) << PrintNode(*node);
    }
    for (const Value* output : node->outputs) {
      if (output != nullptr && output->kind == ValueKind::kParamGrad) {
        EXPECT_EQ(output->desc.dtype, DType::kFloat) << PrintNode(*node);
      }
    }
  }
}

TEST(AssignLayoutsTest, ImagesAreChannelsLastBetweenReorders) {
  const auto net = Reusing(LeNetLike());
  std::set<const Value*> reordered;
  for (const Node* node : net->graph().ScheduledNodes()) {
    if (node->op.name() == "Reorder") {
      EXPECT_NE(node->inputs[0]->desc.layout, node->outputs[0]->desc.layout) << PrintNode(*node);
      EXPECT_TRUE(reordered.insert(node->inputs[0]).second)
          << "reordered twice: " << PrintNode(*node);
    } else if (node->op.name() == "Conv" || node->op.name() == "MaxPool") {
      EXPECT_EQ(node->inputs[0]->desc.layout, Layout::kChannelsLast) << PrintNode(*node);
      EXPECT_EQ(node->outputs[0]->desc.layout, Layout::kChannelsLast) << PrintNode(*node);
    }
    // Operands that a rule does not name have the plain layout.
    const LayoutRule rule = node->op.layout_rule();
    for (size_t i = 0; i < node->inputs.size() && node->op.name() != "Reorder"; ++i) {
      if (node->inputs[i] == nullptr || rule.inputs.contains(i)) continue;
      EXPECT_EQ(node->inputs[i]->desc.layout, Layout::kPlain) << PrintNode(*node);
    }
  }
  EXPECT_FALSE(reordered.empty());
}

// Runs the schedule on the planned memory: whenever a value is read, the last writer of each of its
// bytes must be the value itself, or one that shares its memory through a view or in place.
void ExpectNoValueIsOverwritten(const Net& net) {
  constexpr int64_t kGrain = 64;
  const Graph& graph = net.graph();
  std::vector<const Value*> holder((graph.arena_bytes + kGrain - 1) / kGrain, nullptr);
  std::map<const Value*, const Value*> viewed;  // a view -> the value that it shows
  const auto root = [&](const Value* value) {
    while (viewed.count(value) > 0) value = viewed.at(value);
    return value;
  };
  const auto for_each_grain = [&](const Value* value, const auto& fn) {
    const int64_t begin = value->arena_offset,
                  end = begin + static_cast<int64_t>(value->desc.bytes());
    EXPECT_EQ(begin % kGrain, 0);
    EXPECT_LE(end, graph.arena_bytes) << value->name;
    for (int64_t at = begin / kGrain; at * kGrain < end; ++at) fn(holder[at]);
  };
  for (const Node* node : graph.ScheduledNodes()) {
    for (const Value* input : node->inputs) {
      if (input == nullptr || input->arena_offset < 0) continue;
      for_each_grain(input, [&](const Value* held) {
        ASSERT_EQ(root(held), root(input))
            << "'" << input->name << "' is lost before " << PrintNode(*node);
      });
    }
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      const Value* output = node->outputs[i];
      if (output == nullptr || output->arena_offset < 0) continue;
      // An output may use an input's memory only as a whole, and only if op or kernel allow it.
      for (size_t k = 0; k < node->inputs.size(); ++k) {
        const Value* input = node->inputs[k];
        if (input == nullptr || input->arena_offset < 0) continue;
        const int64_t a = input->arena_offset, b = output->arena_offset;
        const bool overlaps = a < b + static_cast<int64_t>(output->desc.bytes()) &&
                              b < a + static_cast<int64_t>(input->desc.bytes());
        if (overlaps) {
          EXPECT_TRUE(a == b && i == 0 && (node->MayReplace(k) || node->op.is_view()))
              << PrintNode(*node);
        }
        if (overlaps && node->op.is_view()) viewed[output] = input;
      }
      for (size_t k = 0; k < i; ++k) {
        const Value* other = node->outputs[k];
        if (other == nullptr || other->arena_offset < 0) continue;
        EXPECT_TRUE(other->arena_offset >=
                        output->arena_offset + static_cast<int64_t>(output->desc.bytes()) ||
                    output->arena_offset >=
                        other->arena_offset + static_cast<int64_t>(other->desc.bytes()))
            << PrintNode(*node);
      }
      for_each_grain(output, [&](const Value*& held) { held = output; });
    }
  }
}

struct BodyCase {
  std::string name, body;
};

void PrintTo(const BodyCase& test, std::ostream* out) {
  *out << test.name;
}

class NetTest : public ::testing::TestWithParam<BodyCase> {};

TEST_P(NetTest, ValuesThatLiveTogetherDoNotOverlap) {
  for (const std::string header :
       {"", "default_forward_type: BFLOAT16 default_backward_type: BFLOAT16 "}) {
    for (const Phase phase : {TRAIN, TEST}) {
      for (const bool fuses : {true, false}) {
        const std::vector<std::string> disabled =
            fuses ? std::vector<std::string>{} : std::vector<std::string>{"fuse-epilogues"};
        ExpectNoValueIsOverwritten(*Reusing(GetParam().body, disabled, header, phase));
      }
    }
  }
}

TEST_P(NetTest, ReusesMemory) {
  EXPECT_LT(Reusing(GetParam().body)->graph().arena_bytes,
            MakeNetOf(GetParam().body, {.keep_all = true})->graph().arena_bytes +
                MakeNetOf(GetParam().body, {.keep_all = true})->persistent_bytes());
}

TEST_P(NetTest, FusionKeepsTheNumbers) {
  const auto fused = Reusing(GetParam().body),
             unfused = Reusing(GetParam().body, {"fuse-epilogues"});
  ExpectSameStep(RunStep(*fused), RunStep(*unfused), 1e-4);
}

TEST_P(NetTest, ReuseKeepsTheNumbers) {
  const auto kept = MakeNetOf(GetParam().body, {.keep_all = true}),
             reused = Reusing(GetParam().body);
  ExpectSameStep(RunStep(*reused), RunStep(*kept), 1e-4);
}

TEST_P(NetTest, RepeatingAPassRepeatsTheNumbers) {
  const auto net = Reusing(GetParam().body);
  TrainingNet(*net).set_next_pass(4);
  const Step first = RunStep(*net);
  TrainingNet(*net).set_next_pass(4);
  ExpectSameStep(RunStep(*net), first, 1e-6);
}

TEST_P(NetTest, BFloat16IsCloseToFloat) {
  const auto narrow = Reusing(GetParam().body, {},
                              "default_forward_type: BFLOAT16 default_backward_type: BFLOAT16 ");
  const auto wide = Reusing(GetParam().body);
  const Step got = RunStep(*narrow), want = RunStep(*wide);
  EXPECT_NEAR(got.loss, want.loss, 0.03 * want.loss);
  for (const auto& [name, values] : want.gradients) {
    double dot = 0, got_square = 0, want_square = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double a = got.gradients.at(name)[i], b = values[i];
      dot += a * b, got_square += a * a, want_square += b * b;
    }
    EXPECT_GT(dot / std::sqrt(got_square * want_square), 0.9) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, NetTest,
                         ::testing::Values(BodyCase{"ConvRelu", ConvRelu()},
                                           BodyCase{"LeNetLike", LeNetLike()},
                                           BodyCase{"Residual", Residual()},
                                           BodyCase{"Branches", Branches()}),
                         [](const auto& info) { return info.param.name; });

TEST(VerifierTest, RejectsAValueReadBeforeItIsWritten) {
  const auto net = Reusing(ConvRelu());
  EXPECT_NO_THROW(VerifyGraph(net->graph(), "lower-layers"));
  Graph graph{CompileOptions{}};
  Value& x = graph.NewValue("x", Shape{2}, DType::kFloat, ValueKind::kActivation);
  Value& y = graph.NewValue("y", Shape{2}, DType::kFloat, ValueKind::kActivation);
  graph.Append(ops::Relu{}, {&x}, {&y}).layers = {0};
  try {
    VerifyGraph(graph, "lower-layers");
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'x' is read before it is written"));
    EXPECT_THAT(error.what(), HasSubstr("lower-layers"));
  }
}

TEST(VerifierTest, RejectsASecondWriter) {
  Graph graph{CompileOptions{}};
  Value& x = graph.NewValue("x", Shape{2}, DType::kFloat, ValueKind::kExternal);
  Value& y = graph.NewValue("y", Shape{2}, DType::kFloat, ValueKind::kActivation);
  graph.Append(ops::Relu{}, {&x}, {&y}).layers = {0};
  EXPECT_NO_THROW(VerifyGraph(graph, "lower-layers"));
  graph.Append(ops::Relu{}, {&x}, {&y}).layers = {0};
  EXPECT_THROW(VerifyGraph(graph, "lower-layers"), InternalError);
}

TEST(VerifierTest, RejectsAWriteToTheCallersMemory) {
  Graph graph{CompileOptions{}};
  Value& x = graph.NewValue("x", Shape{2}, DType::kFloat, ValueKind::kExternal);
  graph.Append(ops::Relu{}, {&x}, {&x}).layers = {0};
  EXPECT_THROW(VerifyGraph(graph, "lower-layers"), InternalError);
}

}  // namespace
}  // namespace caffe
