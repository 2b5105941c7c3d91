// If a gradient is NaN at an element that a ReLU cuts off, the plan that joins ReLU's gradient with
// BatchNorm's gave 0, and all others NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"

namespace caffe {
namespace {

constexpr const char* kReluNet =
    "layer { name: 'in' type: 'Input' top: 'x' top: 't' input_param { shape { dim: 4 dim: 3 dim: 2 "
    "dim: 2 } shape { dim: 4 dim: 3 dim: 2 dim: 2 } } } "
    "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 3 "
    "kernel_size: 1 weight_filler { type: 'msra' } } } "
    "layer { name: 'n' type: 'BatchNorm' bottom: 'c' top: 'n' } "
    "layer { name: 's' type: 'Scale' bottom: 'n' top: 'n' scale_param { bias_term: true } } "
    "layer { name: 'r' type: 'ReLU' bottom: 'n' top: 'n' } "
    "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'n' bottom: 't' top: 'loss' } ";

std::unique_ptr<Net> MakeReluNet(const NetOptions& options) {
  NetParameter param;
  ParseTextProto(kReluNet, "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  auto net = std::make_unique<Net>(param, options);
  for (const char* name : {"x", "t"}) {
    float* values = net->blob_by_name(name)->mutable_cpu_data();
    for (int i = 0; i < 48; ++i) values[i] = static_cast<float>((i * 31) % 17) / 8 - 1;
  }
  return net;
}

bool FirstGradientIsNan(Precision precision, bool fuses) {
  const auto shown = MakeReluNet({.seed = 3, .precision = precision});
  shown->Forward();
  NetOptions options{.keep_all = false, .seed = 3, .precision = precision};
  if (!fuses) options.disabled_passes = {"fuse-epilogues"};
  const auto fused = MakeReluNet(options);
  Net& net = *fused;
  // The gradients of cut-off elements are NaN.
  for (int i = 0; i < 48; ++i) {
    if (shown->blob_by_name("n")->cpu_data()[i] == 0)
      net.blob_by_name("t")->mutable_cpu_data()[i] = std::numeric_limits<float>::quiet_NaN();
  }
  net.ForwardBackward();
  return std::isnan(net.layer_params("s")[1]->cpu_diff()[0]) &&
         std::isnan(net.layer_params("c")[0]->cpu_diff()[0]);
}

TEST(IssueNanGradientAtReluTest, StaysNan) {
  for (const Precision precision : {FP32, BF16, FP64}) {
    EXPECT_TRUE(FirstGradientIsNan(precision, false)) << Precision_Name(precision);
    EXPECT_TRUE(FirstGradientIsNan(precision, true)) << Precision_Name(precision);
  }
}

}  // namespace
}  // namespace caffe
