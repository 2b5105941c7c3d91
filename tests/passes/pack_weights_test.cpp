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

namespace caffe {
namespace {

constexpr const char* kNet =
    "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 16 dim: 9 dim: 9 } "
    "} } "
    "layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a' convolution_param { num_output: 32 "
    "kernel_size: 3 pad: 1 weight_filler { type: 'msra' } bias_filler { type: 'gaussian' } } } "
    "layer { name: 'b' type: 'Convolution' bottom: 'a' top: 'b' convolution_param { num_output: 32 "
    "kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } } "
    "layer { name: 'sum' type: 'Eltwise' bottom: 'b' bottom: 'a' top: 'sum' } "
    "layer { name: 'relu' type: 'ReLU' bottom: 'sum' top: 'sum' } ";

std::unique_ptr<Net> MakeNet(Phase phase, NetOptions options) {
  NetParameter param;
  ParseTextProto(kNet, "net", &param);
  param.mutable_state()->set_phase(phase);
  options.seed = 7;
  auto net = std::make_unique<Net>(param, options);
  float* x = net->blob_by_name("x")->mutable_cpu_data();
  for (int64_t i = 0; i < net->blob_by_name("x")->count(); ++i)
    x[i] = static_cast<float>((i * 37) % 101) / 50 - 1;
  return net;
}

std::vector<float> Output(Net& net) {
  const Blob& y = *net.Forward()[0];
  return {y.cpu_data(), y.cpu_data() + y.count()};
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
    const auto packed = MakeNet(TEST, options), plain = MakeNet(TEST, without);
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
  EXPECT_EQ(Packed(*MakeNet(TRAIN, {.keep_all = GetParam()})), 0);
}

INSTANTIATE_TEST_SUITE_P(Plans, PackWeightsTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "KeepAll" : "Reuse"; });

}  // namespace
}  // namespace caffe
