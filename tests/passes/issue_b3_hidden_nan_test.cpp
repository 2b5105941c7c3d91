// A ReLU that was part of a convolution, a sum or a normalisation turned NaN into 0, so a net with
// NaN in its weights or data continued training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

constexpr char kConv[] =
    "convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: 'gaussian' std: "
    "0.5 } }";

std::string Input(const std::string& types) {
  return types +
         " layer { name: 'data' type: 'Input' top: 'data' "
         "input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }";
}

std::string Conv(const std::string& name) {
  return "layer { name: '" + name + "' type: 'Convolution' bottom: 'data' top: '" + name + "' " +
         kConv + " } ";
}

constexpr char kEnd[] =
    "layer { name: 'loss' type: 'Reduction' bottom: 'r' top: 'loss' loss_weight: 1 "
    "reduction_param { operation: SUMSQ } }";

struct Case {
  const char* name;
  std::string layers;
};

const std::vector<Case>& ReluCases() {
  static const std::vector<Case> cases = {
      {"convolution", Conv("c") + "layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'r' } "},
      {"sum", Conv("c") + Conv("d") +
                  "layer { name: 's' type: 'Eltwise' bottom: 'c' bottom: 'd' top: 's' } "
                  "layer { name: 'r' type: 'ReLU' bottom: 's' top: 'r' } "},
      {"normalisation", Conv("c") + "layer { name: 'n' type: 'BatchNorm' bottom: 'c' top: 'n' } "
                                    "layer { name: 'g' type: 'Scale' bottom: 'n' top: 'g' } "
                                    "layer { name: 'r' type: 'ReLU' bottom: 'g' top: 'r' } "}};
  return cases;
}

TEST(IssueB3Test, NanInDataReachesTheLoss) {
  for (const char* types : {"", "default_forward_type: BFLOAT16", "default_forward_type: FLOAT16",
                            "default_forward_type: DOUBLE"}) {
    for (const Case& test : ReluCases()) {
      for (const Phase phase : {TRAIN, TEST}) {
        NetParameter param = testing::ParseNet(Input(types) + test.layers + kEnd);
        param.mutable_state()->set_phase(phase);
        Net net(param, {.keep_all = false, .with_backward = false, .seed = 3});
        Blob& data = *net.input_blobs()[0];
        std::fill_n(data.mutable_cpu_data(), data.count(), 1.0f);
        data.mutable_cpu_data()[7] = std::numeric_limits<float>::quiet_NaN();
        float loss = 0;
        net.Forward(&loss);
        EXPECT_TRUE(std::isnan(loss)) << test.name << " " << types << " " << loss;
      }
    }
  }
}

TEST(IssueB3Test, TheDefaultPlanNamesThePoisonedParameter) {
  Net net(testing::ParseNet(Input("") + ReluCases()[0].layers + kEnd),
          {.keep_all = false, .seed = 3});
  net.layer_params("c")[0]->mutable_cpu_data()[0] = std::numeric_limits<float>::quiet_NaN();
  Blob& data = *net.input_blobs()[0];
  std::fill_n(data.mutable_cpu_data(), data.count(), 1.0f);
  EXPECT_TRUE(std::isnan(net.ForwardBackward()));
  EXPECT_THAT(net.DescribeFirstNonFinite(),
              ::testing::HasSubstr("parameter c.0 is not finite at element 0"));
}

TEST(IssueB3Test, TheDefaultPlanNamesLayerAndBlob) {
  Net net(testing::ParseNet(Input("") + ReluCases()[0].layers + kEnd),
          {.keep_all = false, .seed = 3});
  Blob& data = *net.input_blobs()[0];
  std::fill_n(data.mutable_cpu_data(), data.count(), std::numeric_limits<float>::max());
  EXPECT_FALSE(std::isfinite(net.ForwardBackward()));
  EXPECT_THAT(net.DescribeFirstNonFinite(),
              ::testing::HasSubstr("layer 'c' (Convolution) is the first whose blob 'r'"));
}

TEST(IssueB3Test, NegativeNumbersBecomeZeroExactly) {
  Net net(testing::ParseNet(Input("") + ReluCases()[0].layers + kEnd + R"(
              layer { name: 'out' type: 'Power' bottom: 'r' top: 'out' })"),
          {.keep_all = false, .with_backward = false, .seed = 3});
  Blob& data = *net.input_blobs()[0];
  for (int i = 0; i < data.count(); ++i)
    data.mutable_cpu_data()[i] = static_cast<float>(i * 37 % 11 - 5);
  net.Forward();
  const Blob& out = *net.blob_by_name("out");
  int zeros = 0;
  for (int i = 0; i < out.count(); ++i) {
    EXPECT_TRUE(out.cpu_data()[i] == 0 || out.cpu_data()[i] > 1e-3f) << out.cpu_data()[i];
    zeros += out.cpu_data()[i] == 0;
  }
  EXPECT_GT(zeros, out.count() / 4);
}

}  // namespace
}  // namespace caffe
