// Letting the following convolution compute the sums of a normalisation's gradient changes numbers
// only by rounding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LayersOf;

struct BlockOptions {
  int kernel = 3, outputs = 16, group = 1, stride = 1;
  double slope = 0;
  bool has_scale = true;
};

std::string BlockConv(const std::string& name, const std::string& bottom,
                      const BlockOptions& options) {
  return StrCat("layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '",
                name, "' convolution_param { num_output: ", options.outputs,
                " kernel_size: ", options.kernel, " pad: ", options.kernel / 2,
                " stride: ", options.stride, " group: ", options.group,
                " bias_term: false weight_filler { type: 'xavier' } } } ");
}

std::string Norm(const std::string& name, const BlockOptions& options) {
  std::string text = StrCat("layer { name: '", name, "_bn' type: 'BatchNorm' bottom: '", name,
                            "' top: '", name, "' } ");
  if (options.has_scale) {
    text += StrCat("layer { name: '", name, "_scale' type: 'Scale' bottom: '", name, "' top: '",
                   name, "' scale_param { bias_term: true filler { type: 'uniform' min: 0.5 ",
                   "max: 1 } bias_filler { type: 'uniform' min: -0.5 max: 0.5 } } } ");
  }
  return text + StrCat("layer { name: '", name, "_relu' type: 'ReLU' bottom: '", name, "' top: '",
                       name, "' relu_param { negative_slope: ", options.slope, " } } ");
}

// A normalisation with ReLU, and a convolution with `options` that reads it.
NetParameter NormAndReader(const BlockOptions& norm, const BlockOptions& reader) {
  NetParameter param;
  ParseTextProto(
      "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { "
      "shape { dim: 4 dim: 3 dim: 9 dim: 8 } shape { dim: 4 } data_filler { type: 'gaussian' } "
      "data_filler { type: 'constant' value: 1 } } } " +
          BlockConv("a", "data", {.outputs = norm.outputs}) + Norm("a", norm) +
          BlockConv("b", "a", reader) + Norm("b", {}) + BlockConv("c", "b", {.kernel = 1}) +
          "layer { name: 'ip' type: 'InnerProduct' bottom: 'c' top: 'ip' inner_product_param { "
          "num_output: 3 weight_filler { type: 'xavier' } } } layer { name: 'loss' type: "
          "'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }",
      "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  return param;
}

class CudaFuseNormGradientsTest : public ::testing::Test {
 protected:
  void SetUp() override { Caffe::set_mode(Caffe::GPU); }
  void TearDown() override { Caffe::set_mode(Caffe::CPU); }

  static NetOptions Options(Precision precision) {
    return {.keep_all = false, .seed = 1, .precision = precision};
  }
};

void ExpectNearGradients(const Net& one, const Net& other) {
  for (size_t k = 0; k < one.learnable_params().size(); ++k) {
    const Blob &a = *one.learnable_params()[k].blob, &b = *other.learnable_params()[k].blob;
    double difference = 0, norm = 1e-12;
    for (int64_t i = 0; i < a.count(); ++i) {
      difference += std::pow(double{a.cpu_diff()[i]} - double{b.cpu_diff()[i]}, 2);
      norm += std::pow(double{a.cpu_diff()[i]}, 2);
    }
    EXPECT_LE(std::sqrt(difference / norm), 5e-3) << one.learnable_params()[k].name;
  }
}

TEST_F(CudaFuseNormGradientsTest, ChangesNoNumberBeyondRounding) {
  for (const int stride : {1, 2}) {
    const NetParameter param = NormAndReader({}, {.outputs = 24, .stride = stride});
    NetOptions options = Options(FP16);
    Net fused(param, options);
    options.disabled_passes = {"fuse-norm-gradients"};
    Net plain(param, options);
    EXPECT_THAT(LayersOf(fused, "ConvGradNorm"), ElementsAre("c", "b"));
    EXPECT_THAT(LayersOf(fused, "BatchNormGradOfSums"), ElementsAre("b_bn", "a_bn"));
    EXPECT_THAT(LayersOf(fused, "BatchNormReluGrad"), IsEmpty());
    EXPECT_THAT(LayersOf(plain, "ConvGradNorm"), IsEmpty());
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_NEAR(fused.ForwardBackward(), plain.ForwardBackward(), 1e-3);
      ExpectNearGradients(fused, plain);
    }
  }
}

TEST_F(CudaFuseNormGradientsTest, LeavesAloneWhatNoEngineServes) {
  const auto of_a = [](const NetParameter& param, Precision precision) {
    const std::vector<std::string> layers =
        LayersOf(Net(param, Options(precision)), "ConvGradNorm");
    return std::count(layers.begin(), layers.end(), "b");
  };
  EXPECT_EQ(of_a(NormAndReader({}, {}), FP16), 1);
  EXPECT_EQ(of_a(NormAndReader({}, {.group = 2}), FP16), 0);
  EXPECT_EQ(of_a(NormAndReader({.outputs = 12}, {}), FP16), 0);
  EXPECT_EQ(of_a(NormAndReader({.slope = 0.5}, {}), FP16), 0);
  EXPECT_EQ(of_a(NormAndReader({.has_scale = false}, {}), FP16), 0);
  for (const Precision precision : {FP32, BF16})
    EXPECT_EQ(of_a(NormAndReader({}, {}), precision), 0);
  Caffe::set_mode(Caffe::CPU);
  EXPECT_EQ(of_a(NormAndReader({}, {}), FP16), 0);
}

}  // namespace
}  // namespace caffe
