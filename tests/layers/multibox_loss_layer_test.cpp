#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

struct Learned {
  float loss = 0;
  std::vector<float> gradient;  // of the locations
};

// One image with one object, at codes that are all 0.
Learned LearnLocations(const std::string& options) {
  const auto net = testing::NetOf(StrCat(R"(
      force_backward: true
      layer { name: 'loc' type: 'Input' top: 'loc' input_param { shape { dim: 1 dim: 16 } } }
      layer { name: 'conf' type: 'Input' top: 'conf' input_param { shape { dim: 1 dim: 8 } } }
      layer { name: 'map' type: 'DummyData' top: 'map' top: 'image' dummy_data_param {
              shape { dim: 1 dim: 1 dim: 2 dim: 2 } shape { dim: 1 dim: 3 dim: 40 dim: 40 } } }
      layer { name: 'p' type: 'PriorBox' bottom: 'map' bottom: 'image' top: 'p'
              prior_box_param { min_size: 18 variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 } }
      layer { name: 'objects' type: 'Input' top: 'objects'
              input_param { shape { dim: 1 dim: 1 dim: 1 dim: 8 } } }
      layer { name: 'l' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'p' bottom: 'objects'
              top: 'loss' multibox_loss_param { num_classes: 2 code_type: CENTER_SIZE )",
                                         options, " } }"));
  const float object[] = {0, 1, 0, 0.05F, 0.1F, 0.5F, 0.45F, 0};
  std::ranges::copy(object, net->blob_by_name("objects")->mutable_cpu_data());
  std::fill_n(net->blob_by_name("conf")->mutable_cpu_data(), 8, 0.0F);
  std::fill_n(net->blob_by_name("loc")->mutable_cpu_data(), 16, 0.0F);
  Learned learned;
  learned.loss = net->ForwardBackward();
  const float* gradient = net->blob_by_name("loc")->cpu_diff();
  learned.gradient.assign(gradient, gradient + 16);
  return learned;
}

// SSD divides the difference of codes by the variance and copies the gradient of what it has
// divided. At codes of 0 the loss and that gradient are those without the option.
TEST(MultiBoxLossTest, LeavesTheVarianceOutOfTheGradientAsSsdDoes) {
  for (const std::string type : {"SMOOTH_L1", "L2"}) {
    const Learned plain = LearnLocations("loc_loss_type: " + type);
    const Learned encoded =
        LearnLocations("encode_variance_in_target: true loc_loss_type: " + type);
    EXPECT_FLOAT_EQ(encoded.loss, plain.loss) << type;
    EXPECT_NE(std::ranges::count(plain.gradient, 0.0F), 16) << type;
    for (size_t i = 0; i < plain.gradient.size(); ++i)
      EXPECT_NEAR(encoded.gradient[i], plain.gradient[i], 1e-6) << type << " " << i;
  }
}

}  // namespace
}  // namespace caffe
