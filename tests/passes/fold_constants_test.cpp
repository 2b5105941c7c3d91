// In testing, normalisations and scales become part of the weights of the preceding layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/blob_values.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::Output;
using ::testing::Pointwise;

constexpr const char* kInput =
    "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 dim: 6 dim: 5 } "
    "} } ";

std::string Conv(const std::string& name, const std::string& bottom, const std::string& options) {
  return StrCat("layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '",
                name, "' convolution_param { num_output: 4 kernel_size: 3 pad: 1 ", options,
                " weight_filler { type: 'msra' } bias_filler { type: 'gaussian' } } } ");
}
std::string Norm(const std::string& blob) {
  return StrCat("layer { name: '", blob, "_bn' type: 'BatchNorm' bottom: '", blob, "' top: '", blob,
                "' } ");
}
std::string Scale(const std::string& blob, bool has_bias = true) {
  return StrCat("layer { name: '", blob, "_scale' type: 'Scale' bottom: '", blob, "' top: '", blob,
                "' scale_param { filler { type: 'uniform' min: -2 max: 2 } bias_term: ",
                has_bias ? "true" : "false", " bias_filler { type: 'gaussian' } } } ");
}
// NVCaffe's normalization, which has a scale and a bias.
std::string OwnScaleNorm(const std::string& blob) {
  return StrCat(
      "layer { name: '", blob, "_bn' type: 'BatchNorm' bottom: '", blob, "' top: '", blob,
      "' batch_norm_param { scale_filler { type: 'uniform' min: -2 max: 2 } bias_filler { "
      "type: 'gaussian' } } } ");
}
std::string ReluOf(const std::string& blob) {
  return StrCat("layer { name: '", blob, "_relu' type: 'ReLU' bottom: '", blob, "' top: '", blob,
                "' } ");
}

struct FoldCase {
  std::string name, layers;
  std::vector<std::string> steps;  // ops, without conversions
};

std::vector<FoldCase> FoldCases() {
  return {
      {"NormScaleRelu", Conv("a", "x", "") + Norm("a") + Scale("a") + ReluOf("a"), {"Conv[relu]"}},
      {"NormWithItsOwnScale", Conv("a", "x", "") + OwnScaleNorm("a") + ReluOf("a"), {"Conv[relu]"}},
      {"NormWithItsOwnScaleAndAnother",
       Conv("a", "x", "") + OwnScaleNorm("a") + Scale("a"),
       {"Conv", "ScaleShift"}},
      {"PspnetsNorm",
       Conv("a", "x", "") +
           "layer { name: 'a_bn' type: 'BN' bottom: 'a' top: 'a' bn_param { slope_filler { "
           "type: 'uniform' min: -2 max: 2 } bias_filler { type: 'gaussian' } } } ",
       {"Conv"}},
      {"NormWithoutBias", Conv("a", "x", "bias_term: false") + Norm("a"), {"Conv"}},
      {"ScaleWithoutShift", Conv("a", "x", "") + Scale("a", false), {"Conv"}},
      {"Groups", Conv("a", "x", "group: 2") + Norm("a") + Scale("a"), {"Conv"}},
      {"TwoInARow",
       Conv("a", "x", "") + Norm("a") + ReluOf("a") + Conv("b", "a", "") + Norm("b") + Scale("b"),
       {"Conv[relu]", "Conv"}},
      {"Residual",
       Conv("a", "x", "") + Norm("a") + Conv("b", "a", "") + Norm("b") + Scale("b") +
           "layer { name: 's' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 's' } " + ReluOf("s"),
       {"Conv", "Conv[add, relu]"}},
      {"InnerProduct",
       "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' inner_product_param { "
       "num_output: 7 weight_filler { type: 'xavier' } } } " +
           Norm("a") + Scale("a"),
       {"Gemm"}},
      // A second scale stays: only one is folded after a normalisation.
      {"TwoScales",
       Conv("a", "x", "") + Scale("a") +
           "layer { name: 'more' type: 'Scale' bottom: 'a' top: 'a' scale_param { "
           "filler { type: 'uniform' min: 1 max: 2 } } } ",
       {"Conv", "ScaleShift"}},
      // A value with other readers does not change.
      {"TwoReaders",
       Conv("a", "x", "") + "layer { name: 'n' type: 'BatchNorm' bottom: 'a' top: 'n' } "
                            "layer { name: 's' type: 'Eltwise' bottom: 'a' bottom: 'n' top: 's' } ",
       {"Conv", "BatchNormInference[add]"}},
  };
}

std::unique_ptr<Net> MakeFoldedNet(const std::string& layers, NetOptions options = {}) {
  NetParameter param;
  ParseTextProto(kInput + layers, "net", &param);
  param.mutable_state()->set_phase(TEST);
  options.keep_all = false;
  options.with_backward = false;
  options.seed = 7;
  auto net = std::make_unique<Net>(param, options);
  for (size_t i = 0; i < net->layers().size(); ++i) {
    const std::string type = net->layers()[i]->type();
    if (type != "BatchNorm" && type != "BN") continue;
    const auto& params = net->layer_params(static_cast<int>(i));
    const size_t mean = type == "BN" ? 2 : 0;
    for (int64_t c = 0; c < params[mean]->count(); ++c) {
      params[mean]->mutable_cpu_data()[c] = 0.3f * static_cast<float>(c) - 0.5f;
      params[mean + 1]->mutable_cpu_data()[c] = 0.5f + static_cast<float>(c);
    }
    if (type == "BatchNorm") params[2]->mutable_cpu_data()[0] = 2;
  }
  float* x = net->blob_by_name("x")->mutable_cpu_data();
  for (int i = 0; i < 240; ++i) x[i] = static_cast<float>((i * 37) % 101) / 50 - 1;
  return net;
}

// Ops with their fused epilogues, without conversions and views.
std::vector<std::string> Steps(const Net& net) {
  std::vector<std::string> steps;
  for (const PlanStep& step : PlanSteps(net)) {
    const std::string op = step.op.substr(0, step.op.find('['));
    if (op == "Reorder" || op == "Cast" || op == "View") continue;
    std::string epilogue;
    for (const char* entry : {"add", "relu"}) {
      if (step.op.find(StrCat(", ", entry)) != std::string::npos)
        epilogue += StrCat(epilogue.empty() ? "" : ", ", entry);
    }
    steps.push_back(op + (epilogue.empty() ? "" : "[" + epilogue + "]"));
  }
  return steps;
}

class FoldConstantsTest : public ::testing::TestWithParam<FoldCase> {};

TEST_P(FoldConstantsTest, GivesTheSameNumbersInFewerSteps) {
  for (const Precision precision : {FP32, FP64, BF16, FP16}) {
    const auto folded = MakeFoldedNet(GetParam().layers, {.precision = precision});
    const auto plain = MakeFoldedNet(
        GetParam().layers, {.disabled_passes = {"fold-constants"}, .precision = precision});
    const double tolerance = precision == BF16 ? 0.15 : precision == FP16 ? 0.02 : 1e-5;
    EXPECT_THAT(Output(*folded),
                Pointwise(FloatNear(static_cast<float>(tolerance)), Output(*plain)))
        << Precision_Name(precision);
  }
  EXPECT_EQ(Steps(*MakeFoldedNet(GetParam().layers)), GetParam().steps);
}

INSTANTIATE_TEST_SUITE_P(Nets, FoldConstantsTest, ::testing::ValuesIn(FoldCases()),
                         [](const auto& info) { return info.param.name; });

TEST(FoldedWeightsTest, FollowEveryParameterThatChanges) {
  const std::string layers = Conv("a", "x", "") + Norm("a") + Scale("a") + ReluOf("a");
  const auto folded = MakeFoldedNet(layers),
             plain = MakeFoldedNet(layers, {.disabled_passes = {"fold-constants"}});
  ASSERT_LT(Steps(*folded).size(), Steps(*plain).size());
  Output(*folded);
  for (const char* layer : {"a", "a_bn", "a_scale"}) {
    for (size_t k = 0; k < folded->layer_params(layer).size(); ++k) {
      const std::vector<float> before = Output(*folded);
      for (Net* net : {folded.get(), plain.get()})
        net->layer_params(layer)[k]->mutable_cpu_data()[0] += 0.5f;
      EXPECT_THAT(Output(*folded), Pointwise(FloatNear(1e-5f), Output(*plain))) << layer << k;
      EXPECT_NE(Output(*folded), before) << layer << k;
    }
  }
}

// Folded weights are computed once, however often the net runs.
TEST(FoldedWeightsTest, AreMadeOnceWhileNothingChanges) {
  const auto net = MakeFoldedNet(Conv("a", "x", "") + Norm("a"));
  Executor& executor = TrainingNet(*net).executor();
  ASSERT_FALSE(executor.program().copies.empty());
  executor.profiler().set_on(true);
  for (int i = 0; i < 3; ++i) Output(*net);
  EXPECT_EQ(executor.profiler().times()[0].runs, 1);
  // The holder of the memory may write it without notice until it is released.
  std::shared_ptr<float> held = net->layer_params("a")[0]->hold_cpu_data();
  Output(*net), Output(*net);
  EXPECT_EQ(executor.profiler().times()[0].runs, 3);
  const std::vector<float> before = Output(*net);
  held.get()[0] += 1;
  held.reset();
  EXPECT_NE(Output(*net), before);
  EXPECT_EQ(executor.profiler().times()[0].runs, 5);
  Output(*net);
  EXPECT_EQ(executor.profiler().times()[0].runs, 5);
}

}  // namespace
}  // namespace caffe
