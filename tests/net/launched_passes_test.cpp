// Passes whose losses are requested later.
#include <gtest/gtest.h>

#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"

namespace caffe {
namespace {

constexpr const char* kLaunchedNet = R"pb(
  name: "net"
  layer {
    name: "data"
    type: "DummyData"
    top: "x"
    top: "t"
    dummy_data_param {
      shape { dim: 4 dim: 3 }
      shape { dim: 4 dim: 3 }
      data_filler { type: "gaussian" }
      data_filler { type: "gaussian" }
    }
  }
  layer {
    name: "ip"
    type: "InnerProduct"
    bottom: "x"
    top: "y"
    inner_product_param {
      num_output: 3
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "first" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "first" loss_weight: 2 }
  layer { name: "second" type: "L1Loss" bottom: "y" bottom: "t" top: "second" loss_weight: 0.5 }
)pb";

NetParameter Definition() {
  NetParameter param;
  ParseTextProto(kLaunchedNet, "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  return param;
}

TEST(LaunchedPassesTest, LossesComeInTheOrderOfTheirPasses) {
  const NetOptions options{.keep_all = false, .seed = 5};
  Net waiting(Definition(), options), going(Definition(), options);
  std::vector<float> want, got;
  for (int i = 0; i < 5; ++i) want.push_back(waiting.ForwardBackward());
  for (int i = 0; i < 5; ++i) {
    going.LaunchForwardBackward();
    if (i >= 2) got.push_back(going.AwaitLoss());
  }
  for (int i = 0; i < 2; ++i) got.push_back(going.AwaitLoss());
  EXPECT_EQ(got, want);
  EXPECT_NE(want[0], want[1]);
}

}  // namespace
}  // namespace caffe
