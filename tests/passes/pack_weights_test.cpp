// Kernels get weights, and return gradients, in their own order through conversions in the plan.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/graph/printer.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/ops/pack.hpp"
#include "tests/support/blob_values.hpp"

namespace caffe {
namespace {

using testing::Output;

constexpr const char* kPackedNet =
    "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 16 dim: 9 dim: 9 } "
    "} } "
    "layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a' convolution_param { num_output: 32 "
    "kernel_size: 3 pad: 1 weight_filler { type: 'msra' } bias_filler { type: 'gaussian' } } } "
    "layer { name: 'b' type: 'Convolution' bottom: 'a' top: 'b' convolution_param { num_output: 32 "
    "kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } } "
    "layer { name: 'sum' type: 'Eltwise' bottom: 'b' bottom: 'a' top: 'sum' } "
    "layer { name: 'relu' type: 'ReLU' bottom: 'sum' top: 'sum' } "
    "layer { name: 'loss' type: 'Reduction' bottom: 'sum' top: 'loss' loss_weight: 1 "
    "include { phase: TRAIN } } ";

std::unique_ptr<Net> MakePackedNet(Phase phase, NetOptions options) {
  NetParameter param;
  ParseTextProto(kPackedNet, "net", &param);
  param.mutable_state()->set_phase(phase);
  options.seed = 7;
  auto net = std::make_unique<Net>(param, options);
  float* x = net->blob_by_name("x")->mutable_cpu_data();
  for (int64_t i = 0; i < net->blob_by_name("x")->count(); ++i)
    x[i] = static_cast<float>((i * 37) % 101) / 50 - 1;
  return net;
}

template <typename T>
std::vector<const Node*> NodesOf(const Net& net) {
  std::vector<const Node*> nodes;
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->op.As<T>() != nullptr) nodes.push_back(node);
  }
  return nodes;
}

size_t Packed(const Net& net) {
  return NodesOf<ops::PackWeights>(net).size();
}

// The parameters' gradients after one pass, or accumulated over two.
std::vector<float> Gradients(Net& net, int passes) {
  net.ClearParamDiffs();
  for (int i = 0; i < passes; ++i) net.ForwardBackward();
  std::vector<float> gradients;
  for (const Net::LearnableParam& param : net.learnable_params())
    gradients.insert(gradients.end(), param.blob->cpu_diff(),
                     param.blob->cpu_diff() + param.blob->count());
  return gradients;
}

class PackWeightsTest : public ::testing::TestWithParam<bool> {};

TEST_P(PackWeightsTest, GivesTheSameBitsAsConvertingInEachRun) {
  for (const Precision precision : {FP32, BF16, FP16, FP64}) {
    const NetOptions options{
        .keep_all = GetParam(), .with_backward = false, .precision = precision};
    NetOptions without = options;
    without.disabled_passes = {"keep-weight-copies"};
    const auto packed = MakePackedNet(TEST, options), plain = MakePackedNet(TEST, without);
    EXPECT_EQ(Packed(*plain), 0);
    if (precision == FP32) {
      EXPECT_EQ(Packed(*packed), 2);
    }
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(Output(*packed), Output(*plain)) << Precision_Name(precision);
      for (Net* net : {packed.get(), plain.get()})
        net->layer_params("b")[0]->mutable_cpu_data()[k] += 0.5f;
    }
  }
}

TEST_P(PackWeightsTest, GivesTheSameGradientsAsConvertingInKernels) {
  for (const Precision precision : {FP32, BF16, FP16, FP64}) {
    const NetOptions options{.keep_all = GetParam(), .precision = precision};
    NetOptions without = options;
    without.disabled_passes = {"keep-weight-copies"};
    const auto packed = MakePackedNet(TRAIN, options), plain = MakePackedNet(TRAIN, without);
    for (const int passes : {1, 2})
      EXPECT_EQ(Gradients(*packed, passes), Gradients(*plain, passes)) << Precision_Name(precision);
  }
}

TEST_P(PackWeightsTest, IsAStepOfItsOwnInTraining) {
  const auto net = MakePackedNet(TRAIN, {.keep_all = GetParam()});
  EXPECT_EQ(Packed(*net), 3) << PrintGraph(net->graph());  // a, b, and b in backward
  // That of a: the other is computed in plain order.
  EXPECT_EQ(NodesOf<ops::UnpackGradient>(*net).size(), 1);
  for (const Node* node : NodesOf<ops::PackWeights>(*net))
    EXPECT_EQ(node->outputs[0]->kind, ValueKind::kActivation) << PrintGraph(net->graph());
}

// Packed weights do not belong to any blob.
TEST(PackedWeights, ShareMemoryInKeepAllPlans) {
  const auto net = MakePackedNet(TRAIN, {.keep_all = true});
  std::vector<int64_t> places;
  for (const Node* node : NodesOf<ops::PackWeights>(*net))
    places.push_back(node->outputs[0]->arena_offset);
  ASSERT_EQ(places.size(), 3);
  EXPECT_EQ(places[0], places[1]);
  EXPECT_EQ(places[1], places[2]);
}

TEST(PackedWeights, AreNoneBeyondTwoGibibytes) {
  NetParameter param;
  ParseTextProto(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 dim: 9 dim: 11 "
      "} } } layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a' convolution_param { "
      "num_output: 16777217 kernel_size: 5 stride: 9 } }",
      "net", &param);
  param.mutable_state()->set_phase(TEST);
  const Net net(param, {.keep_all = false, .with_backward = false, .allocate = false});
  EXPECT_EQ(Packed(net), 0);
}

INSTANTIATE_TEST_SUITE_P(Plans, PackWeightsTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "KeepAll" : "Reuse"; });

}  // namespace
}  // namespace caffe
