// Steps after a convolution's data gradient become part of that step, and change no number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/cuda/gradient_epilogue.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/norm.hpp"
#include "tests/support/classifier_net.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct ReluConvOptions {
  int kernel = 1, outputs = 8, group = 1;
  double slope = 0;
  bool has_relu = true, has_bias = true;
};

std::string ReluConv(const std::string& name, const std::string& bottom,
                     const ReluConvOptions& options) {
  std::string text =
      StrCat("layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '", name,
             "' convolution_param { num_output: ", options.outputs,
             " kernel_size: ", options.kernel, " pad: ", options.kernel / 2,
             " group: ", options.group, " bias_term: ", options.has_bias ? "true" : "false",
             " weight_filler { type: 'xavier' } bias_filler { type: 'gaussian' } } } ");
  if (options.has_relu) {
    text += StrCat("layer { name: '", name, "_relu' type: 'ReLU' bottom: '", name, "' top: '", name,
                   "' relu_param { negative_slope: ", options.slope, " } } ");
  }
  return text;
}

// A module of GoogLeNet: `name` joins convolutions of 1x1, of 3x3, and one after a pooling.
std::string Module(const std::string& name, const std::string& bottom,
                   const ReluConvOptions& last = {}) {
  return ReluConv(name + "_a", bottom, {}) + ReluConv(name + "_b", bottom, {}) +
         ReluConv(name + "_c", name + "_b", {.kernel = 3}) +
         StrCat("layer { name: '", name, "_pool' type: 'Pooling' bottom: '", bottom, "' top: '",
                name, "_pool' pooling_param { pool: MAX kernel_size: 3 stride: 1 pad: 1 } } ") +
         ReluConv(name + "_d", name + "_pool", last) +
         StrCat("layer { name: '", name, "' type: 'Concat' bottom: '", name, "_a' bottom: '", name,
                "_c' bottom: '", name, "_d' top: '", name, "' } ");
}

std::string Pool(const std::string& name, const std::string& bottom, const std::string& method) {
  return StrCat("layer { name: '", name, "' type: 'Pooling' bottom: '", bottom, "' top: '", name,
                "' pooling_param { pool: ", method, " kernel_size: 3 stride: 2 } } ");
}

std::string Norm(const std::string& name, const std::string& bottom) {
  return StrCat("layer { name: '", name, "' type: 'BatchNorm' bottom: '", bottom, "' top: '", name,
                "' } layer { name: '", name, "_scale' type: 'Scale' bottom: '", name, "' top: '",
                name, "' scale_param { bias_term: true filler { type: 'uniform' min: 0.5 max: 1 } ",
                "bias_filler { type: 'uniform' min: -0.5 max: 0.5 } } } ");
}

std::string Relu(const std::string& blob) {
  return StrCat("layer { name: '", blob, "_relu' type: 'ReLU' bottom: '", blob, "' top: '", blob,
                "' } ");
}

// A block of ResNet: two convolutions and a shortcut, which is a convolution or the input itself.
std::string Block(const std::string& name, const std::string& bottom, bool has_projection) {
  const ReluConvOptions plain{.kernel = 3, .has_relu = false, .has_bias = false};
  std::string text = ReluConv(name + "_a", bottom, plain) + Norm(name + "_an", name + "_a") +
                     Relu(name + "_an") + ReluConv(name + "_b", name + "_an", plain) +
                     Norm(name + "_bn", name + "_b");
  if (has_projection) {
    text += ReluConv(name + "_p", bottom, {.has_relu = false, .has_bias = false}) +
            Norm(name + "_pn", name + "_p");
  }
  return text +
         StrCat("layer { name: '", name, "' type: 'Eltwise' bottom: '",
                has_projection ? name + "_pn" : bottom, "' bottom: '", name, "_bn' top: '", name,
                "' } ") +
         Relu(name);
}

// The images are so small that a filter's gradient is one sum with and without epilogues.
NetParameter SmallNet(const std::string& layers, const std::string& last) {
  return testing::ClassifierNet(layers, last, {.items = 2, .height = 6, .width = 5});
}

NetParameter Modules() {
  return SmallNet(ReluConv("stem", "data", {.kernel = 3}) + Module("m", "stem") + Module("n", "m") +
                      ReluConv("last", "n", {.has_relu = false}),
                  "last");
}

NetOptions Options(Precision precision, bool is_fused) {
  NetOptions options{.keep_all = false, .seed = 1, .precision = precision};
  if (!is_fused) options.disabled_passes = {"fuse-gradient-epilogues"};
  return options;
}

// The epilogues of gradients, by the layers' names.
std::vector<std::string> Epilogues(const Net& net) {
  std::vector<std::string> epilogues;
  for (const Node* node : net.graph().ScheduledNodes()) {
    const ops::Epilogue* epilogue = node->op.epilogue();
    if (node->direction == Direction::kBackward && epilogue != nullptr && !epilogue->empty()) {
      epilogues.push_back(net.graph().LayerName(node->layers.front()) +
                          ops::EpilogueText(*epilogue));
    }
  }
  return epilogues;
}

std::vector<std::string> BackwardOps(const Net& net, std::string_view op) {
  std::vector<std::string> layers;
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->direction == Direction::kBackward && testing::NameOf(node->op) == op)
      layers.push_back(net.graph().LayerName(node->layers.front()));
  }
  return layers;
}

// Compares, for each parameter, the norm of the gradients' difference with the gradient's norm.
void ExpectNearGradients(const Net& one, const Net& other, double tolerance) {
  for (size_t k = 0; k < one.learnable_params().size(); ++k) {
    const Blob &a = *one.learnable_params()[k].blob, &b = *other.learnable_params()[k].blob;
    double difference = 0, norm = 1e-12;
    for (int64_t i = 0; i < a.count(); ++i) {
      difference += std::pow(double{a.cpu_diff()[i]} - double{b.cpu_diff()[i]}, 2);
      norm += std::pow(double{b.cpu_diff()[i]}, 2);
    }
    EXPECT_LE(std::sqrt(difference / norm), tolerance) << one.learnable_params()[k].name;
  }
}

class CudaGradientEpiloguesTest : public ::testing::Test {
 protected:
  void SetUp() override { Caffe::set_mode(Caffe::GPU); }
  void TearDown() override { Caffe::set_mode(Caffe::CPU); }

  static void ExpectSameNumbers(const NetParameter& param, Precision precision, double tolerance) {
    Net fused(param, Options(precision, true)), plain(param, Options(precision, false));
    EXPECT_THAT(Epilogues(plain), IsEmpty());
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_EQ(fused.ForwardBackward(), plain.ForwardBackward());
      ExpectNearGradients(fused, plain, tolerance);
    }
  }
};

TEST_F(CudaGradientEpiloguesTest, TakeInSumsAndReluAlsoBehindConcatenations) {
  const Net fused(Modules(), Options(FP32, true)), plain(Modules(), Options(FP32, false));
  EXPECT_THAT(Epilogues(fused),
              ElementsAre("last, relu grad", "n_c, relu grad", "n_a, add, add, relu grad",
                          "m_c, relu grad", "m_a, add, add, relu grad"));
  for (const char* op : {"ReluGrad", "ReluGrad+SumToAxes", "EltwiseSum"})
    EXPECT_THAT(BackwardOps(fused, op), IsEmpty()) << op;
  EXPECT_THAT(BackwardOps(plain, "ReluGrad+SumToAxes"), ::testing::SizeIs(9));
  EXPECT_THAT(BackwardOps(plain, "EltwiseSum"), ::testing::SizeIs(2));
}

TEST_F(CudaGradientEpiloguesTest, ChangeNoNumberBeyondRounding) {
  ExpectSameNumbers(Modules(), FP32, 1e-6);
  ExpectSameNumbers(Modules(), FP16, 4e-3);
  ExpectSameNumbers(Modules(), BF16, 3e-2);
}

// A single entry rounds like the step that it replaces.
TEST_F(CudaGradientEpiloguesTest, GiveTheSameBitsBehindOneReluOrOneSum) {
  const ReluConvOptions leaky{.kernel = 3, .slope = 0.25, .has_bias = false};
  const NetParameter relus =
      SmallNet(ReluConv("a", "data", leaky) + ReluConv("b", "a", {.has_bias = false}) +
                   ReluConv("c", "b", leaky),
               "c");
  const NetParameter sums =
      SmallNet(ReluConv("a", "data", {.has_relu = false, .has_bias = false}) +
                   ReluConv("b", "a", {.has_relu = false, .has_bias = false}) +
                   ReluConv("c", "a", {.kernel = 3, .has_relu = false, .has_bias = false}) +
                   "layer { name: 'd' type: 'Eltwise' bottom: 'b' bottom: 'c' top: 'd' } ",
               "d");
  EXPECT_THAT(Epilogues(Net(relus, Options(FP32, true))),
              ElementsAre("c, relu grad", "b, relu grad leaky"));
  EXPECT_THAT(Epilogues(Net(sums, Options(FP32, true))), ElementsAre("b, add"));
  for (const Precision precision : {FP32, FP16, BF16}) ExpectSameNumbers(relus, precision, 0);
  ExpectSameNumbers(sums, FP32, 0);
}

// A maximum that is not positive gets no gradient.
TEST_F(CudaGradientEpiloguesTest, TakeInReluThroughMaxPooling) {
  const ReluConvOptions plain{.kernel = 3, .has_bias = false};
  const std::string last = ReluConv("last", "pool", {.has_relu = false, .has_bias = false});
  const NetParameter chain =
      SmallNet(ReluConv("a", "data", plain) + Pool("pool", "a", "MAX") + last, "last");
  const NetParameter modules = SmallNet(
      ReluConv("stem", "data", {}) + Module("m", "stem") + Pool("pool", "m", "MAX") + last, "last");
  EXPECT_THAT(Epilogues(Net(chain, Options(FP32, true))), ElementsAre("last, relu grad"));
  EXPECT_THAT(Epilogues(Net(modules, Options(FP32, true))),
              ElementsAre("last, relu grad", "m_c, relu grad", "m_a, add, add, relu grad"));
  for (const Precision precision : {FP32, FP16, BF16}) ExpectSameNumbers(chain, precision, 0);
  ExpectSameNumbers(modules, FP32, 1e-6);
  const NetParameter averages =
      SmallNet(ReluConv("a", "data", plain) + Pool("pool", "a", "AVE") + last, "last");
  EXPECT_THAT(Epilogues(Net(averages, Options(FP32, true))), IsEmpty());
}

// LRN's gradient reads the ReLU's result.
TEST_F(CudaGradientEpiloguesTest, TakeInReluBehindResponseNormalisation) {
  const std::string norm = "type: 'LRN' bottom: 'b' top: 'c' lrn_param { alpha: 0.5 } } ";
  const ReluConvOptions conv{.kernel = 3, .slope = 0.25, .has_bias = false};
  const NetParameter param =
      SmallNet(ReluConv("a", "data", conv) + Pool("b", "a", "MAX") + "layer { name: 'c' " + norm +
                   ReluConv("d", "c", conv) +
                   "layer { name: 'e' type: 'LRN' bottom: 'd' top: 'e' lrn_param { alpha: 0.5 } } ",
               "e");
  EXPECT_THAT(Epilogues(Net(param, Options(FP32, true))),
              ElementsAre("e, relu grad leaky", "c, relu grad leaky"));
  for (const Precision precision : {FP32, FP16, BF16})
    ExpectSameNumbers(param, precision, precision == FP32 ? 1e-6 : 1e-2);
}

// The convolutions after a block compute the gradient of its residual; after the last block there
// are none.
TEST_F(CudaGradientEpiloguesTest, TakeInReluBehindAResidual) {
  const NetParameter param =
      SmallNet(ReluConv("stem", "data", {.has_bias = false}) + Block("one", "stem", true) +
                   Block("two", "one", false) + Block("three", "two", true),
               "three");
  const Net net(param, Options(FP32, true));
  EXPECT_THAT(Epilogues(net), ElementsAre("three_a, add, relu grad", "two_a, add, relu grad",
                                          "one_a, add, relu grad"));
  std::vector<std::string> masking;
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->op.As<ops::BatchNormGrad>() != nullptr &&
        node->outputs.size() > ops::BatchNormGrad::kDresidual)
      masking.push_back(net.graph().LayerName(node->layers.front()));
  }
  EXPECT_THAT(masking, ElementsAre("three_pn"));
  ExpectSameNumbers(param, FP32, 1e-5);
  ExpectSameNumbers(param, FP16, 4e-3);
  ExpectSameNumbers(param, BF16, 3e-2);
}

// The added part is computed after the convolutions' gradients, as before GoogLeNet's other losses.
TEST_F(CudaGradientEpiloguesTest, WaitForWhatTheyAdd) {
  const NetParameter param = SmallNet(
      ReluConv("a", "data", {}) +
          "layer { name: 'power' type: 'Power' bottom: 'a' top: 'power' power_param { scale: 2 } "
          "} " +
          ReluConv("b", "a", {}) + ReluConv("c", "a", {}) +
          "layer { name: 'd' type: 'Eltwise' bottom: 'b' bottom: 'c' bottom: 'power' top: 'd' } ",
      "d");
  EXPECT_THAT(Epilogues(Net(param, Options(FP32, true))), ElementsAre("b, add, add, relu grad"));
  ExpectSameNumbers(param, FP32, 1e-6);
}

// A deconvolution uses the op of a convolution's gradient, so a sum after it also becomes part of
// it.
TEST_F(CudaGradientEpiloguesTest, ServeDeconvolutions) {
  const NetParameter param = SmallNet(
      ReluConv("a", "data", {}) + ReluConv("b", "data", {.has_relu = false}) +
          "layer { name: 'c' type: 'Deconvolution' bottom: 'a' top: 'c' convolution_param { "
          "num_output: 8 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: 'xavier' } "
          "} } layer { name: 'd' type: 'Eltwise' bottom: 'b' bottom: 'c' top: 'd' } ",
      "d");
  NetOptions plain_options = Options(FP32, true);
  plain_options.disabled_passes = {"fuse-epilogues"};
  Net fused(param, Options(FP32, true)), plain(param, plain_options);
  std::vector<std::string> forward;
  for (const Node* node : fused.graph().ScheduledNodes()) {
    if (node->direction == Direction::kForward && node->op.name() == "ConvGradData")
      forward.push_back(ops::EpilogueText(*node->op.epilogue()));
  }
  EXPECT_THAT(forward, ElementsAre(", add"));
  EXPECT_EQ(fused.ForwardBackward(), plain.ForwardBackward());
  ExpectNearGradients(fused, plain, 0);
}

TEST_F(CudaGradientEpiloguesTest, LeaveAloneWhatIsNotTheirs) {
  // The parts' ReLUs differ, or one part has none; the following gradient has groups.
  for (const ReluConvOptions& last :
       {ReluConvOptions{.slope = 0.5}, ReluConvOptions{.has_relu = false}}) {
    const NetParameter param = SmallNet(ReluConv("stem", "data", {}) + Module("m", "stem", last) +
                                            ReluConv("last", "m", {.kernel = 3, .has_relu = false}),
                                        "last");
    EXPECT_THAT(Epilogues(Net(param, Options(FP32, true))),
                ElementsAre("m_c, relu grad", "m_a, add, add, relu grad"));
    ExpectSameNumbers(param, FP32, 1e-6);
  }
  const NetParameter groups =
      SmallNet(ReluConv("stem", "data", {}) + ReluConv("last", "stem", {.group = 2}), "last");
  EXPECT_THAT(Epilogues(Net(groups, Options(FP32, true))), IsEmpty());
  NetOptions keep_all = Options(FP32, true);
  keep_all.keep_all = true;
  EXPECT_THAT(Epilogues(Net(Modules(), keep_all)), IsEmpty());
}

TEST_F(CudaGradientEpiloguesTest, LeaveTheProcessorsPlansAlone) {
  Caffe::set_mode(Caffe::CPU);
  for (const Precision precision : {FP32, BF16}) {
    const Net net(Modules(), Options(precision, true));
    EXPECT_THAT(Epilogues(net), IsEmpty());
  }
}

TEST(CudaGradientEpilogueTest, IsAppliedBehindAnEngineThatCannot) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  using Kind = ops::Pointwise::Kind;
  // In packs, with some elements left over, and one by one.
  for (const int64_t first : {0, 1}) {
    constexpr int64_t kCount = 1003;
    std::vector<std::vector<float>> operands(5, std::vector<float>(kCount + first));
    for (size_t k = 0; k < operands.size(); ++k) {
      for (size_t i = 0; i < operands[k].size(); ++i)
        operands[k][i] = static_cast<float>((i + 1) * (k + 1) % 17) - 8.f;
    }
    std::vector<TensorView> views(operands.size());
    for (size_t k = 0; k < operands.size(); ++k) {
      views[k].shape = Shape{kCount};
      views[k].data = operands[k].data() + first;
    }
    std::vector<float> want(operands[0]);
    for (size_t i = 0; i < want.size(); ++i) {
      want[i] += operands[1][i] + operands[3][i];
      want[i] *= operands[4][i] > 0 ? 1.f : 0.25f;
    }
    for (int64_t i = 0; i < first; ++i) want[i] = operands[0][i];
    KernelContext ctx;
    ctx.stream = &device->compute_stream();
    ctx.inputs = views;
    ctx.outputs = std::span(views).first(1);
    cuda::ApplyGradientEpilogue(
        ctx, {{Kind::kAdd, 0, 0, 1}, {Kind::kAdd, 0, 0, 3}, {Kind::kReluGrad, 0.25f, 0, 4}});
    device->Synchronize();
    EXPECT_EQ(operands[0], want);
  }
}

}  // namespace
}  // namespace caffe
