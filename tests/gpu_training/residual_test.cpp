// The end of a residual block is one node in each direction, and changes no gradient.
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

std::string Conv(const std::string& name, const std::string& bottom) {
  return StrCat("layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '",
                name, "' convolution_param { num_output: 4 kernel_size: 1 bias_term: false ",
                "weight_filler { type: 'xavier' } } } layer { name: '", name,
                "_bn' type: 'BatchNorm' bottom: '", name, "' top: '", name, "' } layer { name: '",
                name, "_scale' type: 'Scale' bottom: '", name, "' top: '", name,
                "' scale_param { bias_term: true } } ");
}

std::string Sum(const std::string& name, const std::string& a, const std::string& b) {
  return StrCat("layer { name: '", name, "' type: 'Eltwise' bottom: '", a, "' bottom: '", b,
                "' top: '", name, "' } layer { name: '", name, "_relu' type: 'ReLU' bottom: '",
                name, "' top: '", name, "' } ");
}

// A block with a normalised shortcut, and one whose shortcut is the previous block's output.
NetParameter Blocks() {
  NetParameter param;
  ParseTextProto(
      "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { "
      "shape { dim: 4 dim: 3 dim: 5 dim: 5 } shape { dim: 4 } data_filler { type: 'gaussian' } "
      "data_filler { type: 'constant' value: 1 } } } " +
          Conv("stem", "data") + Conv("shortcut", "stem") + Conv("a", "stem") +
          Sum("first", "shortcut", "a") + Conv("b", "first") + Sum("second", "b", "first") +
          "layer { name: 'ip' type: 'InnerProduct' bottom: 'second' top: 'ip' "
          "inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } } "
          "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }",
      "blocks", &param);
  param.mutable_state()->set_phase(TRAIN);
  param.set_strict_fp32(true);  // to compare with the CPU
  return param;
}

TEST(CudaResidualTest, FusingChangesNoGradient) {
  Net cpu(Blocks(), {.keep_all = false, .seed = 1});
  Caffe::set_mode(Caffe::GPU);
  Net fused(Blocks(), {.keep_all = false, .seed = 1});
  Net plain(Blocks(), {.keep_all = false,
                       .seed = 1,
                       .disabled_passes = {"fuse-epilogues", "fuse-gradient-epilogues"}});
  EXPECT_EQ(CountOps(fused, "ReluGrad"), 0);
  EXPECT_EQ(CountOps(plain, "ReluGrad"), 2);
  const float loss = fused.ForwardBackward();
  for (Net* other : {&plain, &cpu}) {
    EXPECT_NEAR(other->ForwardBackward(), loss, 1e-5);
    for (size_t k = 0; k < fused.learnable_params().size(); ++k) {
      const Blob &a = *fused.learnable_params()[k].blob, &b = *other->learnable_params()[k].blob;
      for (int64_t i = 0; i < a.count(); ++i) {
        ASSERT_NEAR(a.cpu_diff()[i], b.cpu_diff()[i], 2e-5)
            << fused.learnable_params()[k].name << "[" << i << "]";
      }
    }
  }
  Caffe::set_mode(Caffe::CPU);
}

}  // namespace
}  // namespace caffe
