// A normalisation's gradient that computes the ReLU's signs from x has the same bits as one that
// reads the result.
#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/classifier_net.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

using testing::ClassifierNet;
using testing::CountOps;

struct NormOptions {
  int outputs = 16;
  bool has_scale = true, has_relu = true;
  double slope = 0;
};

std::string NormedConv(const std::string& name, const std::string& bottom,
                       const NormOptions& options) {
  std::string text = StrCat(
      "layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '", name,
      "' convolution_param { num_output: ", options.outputs,
      " kernel_size: 3 pad: 1 bias_term: false weight_filler { type: 'xavier' } } } ",
      "layer { name: '", name, "_bn' type: 'BatchNorm' bottom: '", name, "' top: '", name, "' } ");
  if (options.has_scale) {
    text += StrCat("layer { name: '", name, "_scale' type: 'Scale' bottom: '", name, "' top: '",
                   name, "' scale_param { bias_term: true filler { type: 'uniform' min: -1 max: 1 ",
                   "} bias_filler { type: 'uniform' min: -0.5 max: 0.5 } } } ");
  }
  if (options.has_relu) {
    text += StrCat("layer { name: '", name, "_relu' type: 'ReLU' bottom: '", name, "' top: '", name,
                   "' relu_param { negative_slope: ", options.slope, " } } ");
  }
  return text;
}

class CudaRecomputeSignsTest : public ::testing::Test {
 protected:
  void SetUp() override { Caffe::set_mode(Caffe::GPU); }
  void TearDown() override { Caffe::set_mode(Caffe::CPU); }
};

// Channels in whole packs, which are processed by rows, and other counts.
TEST_F(CudaRecomputeSignsTest, GivesTheSameBits) {
  const NetParameter param =
      ClassifierNet(NormedConv("a", "data", {}) + NormedConv("b", "a", {.outputs = 5}) +
                        NormedConv("c", "b", {.has_scale = false}),
                    "c");
  for (const Precision precision : {FP32, FP16, BF16}) {
    NetOptions options{.keep_all = false, .seed = 1, .precision = precision};
    Net from_x(param, options);
    options.disabled_passes = {"recompute-signs"};
    Net from_y(param, options);
    EXPECT_EQ(CountOps(from_x, "BatchNormInference+BatchNormGrad"), 3);
    EXPECT_EQ(CountOps(from_y, "BatchNormGrad"), 3);
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_EQ(from_x.ForwardBackward(), from_y.ForwardBackward());
      for (size_t k = 0; k < from_x.learnable_params().size(); ++k) {
        const Blob &one = *from_x.learnable_params()[k].blob,
                   &other = *from_y.learnable_params()[k].blob;
        for (int64_t i = 0; i < one.count(); ++i)
          ASSERT_EQ(one.cpu_diff()[i], other.cpu_diff()[i]) << from_x.learnable_params()[k].name;
      }
    }
  }
}

TEST_F(CudaRecomputeSignsTest, LeavesAloneWhatXDoesNotTell) {
  const NetParameter leaky = ClassifierNet(NormedConv("a", "data", {.slope = 0.5}), "a");
  const NetParameter without = ClassifierNet(NormedConv("a", "data", {.has_relu = false}), "a");
  const NetParameter residual = ClassifierNet(
      NormedConv("a", "data", {.has_relu = false}) + NormedConv("b", "data", {.has_relu = false}) +
          "layer { name: 'c' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 'c' } "
          "layer { name: 'd' type: 'ReLU' bottom: 'c' top: 'c' } ",
      "c");
  for (const NetParameter& param : {leaky, without, residual}) {
    const Net net(param, {.keep_all = false, .seed = 1});
    EXPECT_EQ(CountOps(net, "BatchNormInference+BatchNormGrad"), 0);
  }
}

TEST_F(CudaRecomputeSignsTest, LeavesTheProcessorsPlansAlone) {
  Caffe::set_mode(Caffe::CPU);
  const Net net(ClassifierNet(NormedConv("a", "data", {}), "a"), {.keep_all = false, .seed = 1});
  EXPECT_EQ(CountOps(net, "BatchNormInference+BatchNormGrad"), 0);
}

}  // namespace
}  // namespace caffe
