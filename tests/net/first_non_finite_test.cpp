// The plan that `caffe train` runs says which layer first produced a NaN, and in which blob, even
// if that layer has been fused with others and memory is reused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Case {
  const char* culprit;  // the layer's text except for its bottom and top
  const char* place;
};

// A convolution, the culprit, a ReLU after it, and another convolution.
std::string NetWith(const std::string& types, const Case& one) {
  return "state { phase: TRAIN } " + types + R"(
      layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }
      layer { name: 'before' type: 'Convolution' bottom: 'x' top: 'a'
              convolution_param { num_output: 4 kernel_size: 1 bias_term: false
                                  weight_filler { type: 'constant' value: -0.5 } } }
      layer { name: 'culprit' bottom: 'a' top: 'b' )" +
         one.culprit + R"( }
      layer { name: 'relu' type: 'ReLU' bottom: 'b' top: 'b' }
      layer { name: 'after' type: 'Convolution' bottom: 'b' top: 'c'
              convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'xavier' } } }
      layer { name: 'relu2' type: 'ReLU' bottom: 'c' top: 'c' }
      layer { name: 'loss' type: 'Reduction' bottom: 'c' top: 'loss' loss_weight: 1
              reduction_param { operation: SUMSQ } })";
}

TEST(FirstNonFiniteTest, TheDefaultPlanNamesTheLayerInTheMiddle) {
  const std::vector<Case> cases = {
      {"type: 'Log'", "'culprit' (Log)"},
      {"type: 'Power' power_param { power: 0.5 shift: -1 }", "'culprit' (Power)"},
      {"type: 'Power' power_param { power: -1 scale: 0 }", "'culprit' (Power)"},
      {"type: 'Exp' exp_param { scale: -1e6 }", "'culprit' (Exp)"}};
  for (const char* types : {"", "default_forward_type: BFLOAT16 default_backward_type: BFLOAT16"}) {
    for (const Case& one : cases) {
      Net net(testing::ParseNet(NetWith(types, one)), {.keep_all = false, .seed = 1});
      Blob& x = *net.blob_by_name("x");
      std::fill_n(x.mutable_cpu_data(), x.count(), 1.0f);
      net.ForwardBackward();
      EXPECT_THAT(net.DescribeFirstNonFinite(), AllOf(HasSubstr(one.place), HasSubstr("blob 'b'")))
          << one.culprit << " " << types;
    }
  }
}

TEST(FirstNonFiniteTest, NothingIsSaidOfFiniteNumbers) {
  Net net(testing::ParseNet(NetWith("", {"type: 'AbsVal'", ""})), {.keep_all = false, .seed = 1});
  Blob& x = *net.blob_by_name("x");
  std::fill_n(x.mutable_cpu_data(), x.count(), 1.0f);
  net.ForwardBackward();
  EXPECT_EQ(net.DescribeFirstNonFinite(), "");
}

// Masks of pooling and packed weights are bytes.
TEST(FirstNonFiniteTest, BytesHaveNoNaN) {
  const std::string log = "layer { name: 'log' type: 'Log' bottom: 'a' top: 'b' } ";
  const std::string pool =
      "layer { name: 'pool' type: 'Pooling' bottom: 'a' top: 'p' "
      "        pooling_param { kernel_size: 2 stride: 2 } } "
      "layer { name: 'log' type: 'Log' bottom: 'p' top: 'b' } ";
  const std::string before = R"(
      layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 16 dim: 8 dim: 8 } } }
      layer { name: 'before' type: 'Convolution' bottom: 'x' top: 'a'
              convolution_param { num_output: 32 kernel_size: 3
                                  weight_filler { type: 'constant' value: -0.5 } } } )";
  const std::string loss =
      "layer { name: 'loss' type: 'Reduction' bottom: 'b' top: 'loss' loss_weight: 1 } ";
  for (const bool trains : {true, false}) {
    Net net(testing::ParseNet((trains ? "state { phase: TRAIN } " : "state { phase: TEST } ") +
                              before + (trains ? pool : log) + loss),
            {.keep_all = false, .with_backward = trains, .seed = 1});
    Blob& x = *net.blob_by_name("x");
    std::fill_n(x.mutable_cpu_data(), x.count(), 1.0f);
    EXPECT_THAT(net.DescribeFirstNonFinite(), HasSubstr("'log' (Log)")) << trains;
  }
}

}  // namespace
}  // namespace caffe
