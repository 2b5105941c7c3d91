// Summing a bias's gradient together with its ReLU's changes no number, even over several passes.
#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

using testing::CountOps;

std::string Conv(const std::string& name, const std::string& bottom, int outputs) {
  return StrCat("layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '",
                name, "' convolution_param { num_output: ", outputs,
                " kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } ",
                "bias_filler { type: 'gaussian' } } } layer { name: '", name,
                "_relu' type: 'ReLU' bottom: '", name, "' top: '", name, "' } ");
}

// Channels in whole packs and other counts; the last convolution has no ReLU.
NetParameter Convolutions() {
  NetParameter param;
  ParseTextProto(
      "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { "
      "shape { dim: 4 dim: 3 dim: 6 dim: 5 } shape { dim: 4 } data_filler { type: 'gaussian' } "
      "data_filler { type: 'constant' value: 1 } } } " +
          Conv("a", "data", 16) + Conv("b", "a", 5) +
          "layer { name: 'c' type: 'Convolution' bottom: 'b' top: 'c' convolution_param { "
          "num_output: 3 kernel_h: 6 kernel_w: 5 weight_filler { type: 'xavier' } } } "
          "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'c' bottom: 'label' top: 'loss' }",
      "convolutions", &param);
  param.mutable_state()->set_phase(TRAIN);
  return param;
}

void ExpectEqualGradients(const Net& one, const Net& other) {
  for (size_t k = 0; k < one.learnable_params().size(); ++k) {
    const Blob &a = *one.learnable_params()[k].blob, &b = *other.learnable_params()[k].blob;
    for (int64_t i = 0; i < a.count(); ++i) {
      ASSERT_NEAR(a.cpu_diff()[i], b.cpu_diff()[i], 2e-5)
          << one.learnable_params()[k].name << "[" << i << "]";
    }
  }
}

TEST(CudaBiasGradientsTest, AreSummedBesideTheGradientOfTheRelu) {
  Net cpu(Convolutions(), {.keep_all = false, .seed = 1});
  Caffe::set_mode(Caffe::GPU);
  // The convolutions' gradients would otherwise include those of the ReLUs.
  NetOptions options{.keep_all = false, .seed = 1, .disabled_passes = {"fuse-gradient-epilogues"}};
  Net fused(Convolutions(), options);
  options.disabled_passes.push_back("fuse-bias-gradients");
  Net plain(Convolutions(), options);
  EXPECT_EQ(CountOps(fused, "ReluGrad+SumToAxes"), 2);
  EXPECT_EQ(CountOps(fused, "ReluGrad"), 0);
  EXPECT_EQ(CountOps(plain, "ReluGrad"), 2);
  EXPECT_EQ(CountOps(cpu, "ReluGrad+SumToAxes"), 0);
  for (int pass = 0; pass < 2; ++pass) {
    const float loss = fused.ForwardBackward();
    for (Net* other : {&plain, &cpu}) {
      EXPECT_NEAR(other->ForwardBackward(), loss, 1e-5);
      ExpectEqualGradients(fused, *other);
    }
  }
  Caffe::set_mode(Caffe::CPU);
}

}  // namespace
}  // namespace caffe
