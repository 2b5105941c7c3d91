// In testing, kernels get weights in an order of their own from a copy that lasts.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
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
    "layer { name: 'relu' type: 'ReLU' bottom: 'sum' top: 'sum' } ";

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

int Packed(const Net& net) {
  int count = 0;
  for (const Node* node : net.graph().ScheduledNodes())
    count += node->op.As<ops::PackWeights>() != nullptr ? 1 : 0;
  return count;
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

TEST_P(PackWeightsTest, IsLeftToTheKernelsInTraining) {
  EXPECT_EQ(Packed(*MakePackedNet(TRAIN, {.keep_all = GetParam()})), 0);
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
