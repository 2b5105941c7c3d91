// The loss of prior boxes on a GPU: the host chooses what they learn, the device computes.
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

// Two items, 16 prior boxes, 3 classes.
std::string BoxNet(const std::string& options) {
  const auto input = [](const std::string& name, const std::string& dims) {
    return "layer { name: '" + name + "' type: 'Input' top: '" + name + "' input_param { shape { " +
           dims + " } } } ";
  };
  return "force_backward: true " + input("loc", "dim: 2 dim: 64") +
         input("conf", "dim: 2 dim: 48") + input("p", "dim: 1 dim: 2 dim: 64") +
         input("objects", "dim: 1 dim: 1 dim: 3 dim: 8") +
         "layer { name: 'l' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'p' bottom: "
         "'objects' top: 'loss' propagate_down: true propagate_down: true propagate_down: false "
         "propagate_down: false multibox_loss_param { num_classes: 3 " +
         options + " } }";
}

// The loss, and the gradients at locations and scores.
std::vector<float> Learned(Caffe::Brew mode, const std::string& options) {
  Caffe::set_mode(mode);
  const auto net = testing::NetOf(BoxNet(options));
  const auto set = [&](const std::string& blob, const auto& value) {
    Blob& x = *net->blob_by_name(blob);
    for (int64_t i = 0; i < x.count(); ++i) x.mutable_cpu_data()[i] = value(i);
  };
  set("loc", [](int64_t i) { return std::sin(static_cast<float>(3 * i)); });
  set("conf", [](int64_t i) { return 2 * std::cos(static_cast<float>(5 * i)); });
  set("p", [](int64_t i) {
    if (i >= 64) return 0.1F;
    const auto box = static_cast<float>(i / 4);
    return 0.05F * box + (i % 4 < 2 ? 0.0F : 0.3F);
  });
  constexpr float kObjects[] = {0,    1, 0, 0.1F, 0.1F, 0.45F, 0.4F, 0,    0,    2,    0,    0.5F,
                                0.6F, 1, 1, 0,    1,    2,     0,    0.3F, 0.3F, 0.6F, 0.6F, 0};
  set("objects", [&](int64_t i) { return kObjects[i]; });
  net->Forward();
  net->Backward();
  std::vector<float> found = {net->blob_by_name("loss")->cpu_data()[0]};
  for (const char* blob : {"loc", "conf"}) {
    const Blob& x = *net->blob_by_name(blob);
    found.insert(found.end(), x.cpu_diff(), x.cpu_diff() + x.count());
  }
  Caffe::set_mode(Caffe::CPU);
  return found;
}

TEST(CudaBoxLossesTest, AreThoseOfTheProcessor) {
  for (const std::string options :
       {"", "mining_type: NONE conf_loss_type: LOGISTIC loc_loss_type: L2",
        "mining_type: HARD_EXAMPLE sample_size: 6 encode_variance_in_target: true",
        "use_prior_for_matching: false bp_inside: true code_type: CENTER_SIZE loc_weight: 0.5"}) {
    SCOPED_TRACE(options);
    const std::vector<float> want = Learned(Caffe::CPU, options);
    const std::vector<float> found = Learned(Caffe::GPU, options);
    ASSERT_EQ(found.size(), want.size());
    EXPECT_GT(want[0], 0);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace caffe
