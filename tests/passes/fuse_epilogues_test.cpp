#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/graph/graph.hpp"
#include "caffe/graph/printer.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/pack.hpp"

namespace caffe {
namespace {

// The beginning of the nets: images, labels and a convolution.
constexpr const char* kStem = R"pb(
  layer {
    name: "data"
    type: "DummyData"
    top: "data"
    top: "label"
    dummy_data_param {
      shape { dim: 4 dim: 3 dim: 8 dim: 8 }
      shape { dim: 4 }
      data_filler { type: "gaussian" }
      data_filler { type: "constant" value: 1 }
    }
  }
  layer {
    name: "conv0"
    type: "Convolution"
    bottom: "data"
    top: "conv0"
    convolution_param {
      num_output: 8
      kernel_size: 3
      pad: 1
      weight_filler { type: "xavier" }
    }
  }
)pb";

// A residual block: every pattern that the pass knows, in one net.
constexpr const char* kResidualNet = R"pb(
  layer { name: "relu0" type: "ReLU" bottom: "conv0" top: "conv0" }
  layer {
    name: "conv1"
    type: "Convolution"
    bottom: "conv0"
    top: "conv1"
    convolution_param {
      num_output: 8
      kernel_size: 3
      pad: 1
      bias_term: false
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
  layer {
    name: "scale1"
    type: "Scale"
    bottom: "conv1"
    top: "conv1"
    scale_param { bias_term: true }
  }
  layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
  layer { name: "sum" type: "Eltwise" bottom: "conv0" bottom: "conv1" top: "sum" }
  layer { name: "relu2" type: "ReLU" bottom: "sum" top: "sum" }
  layer {
    name: "ip"
    type: "InnerProduct"
    bottom: "sum"
    top: "ip"
    inner_product_param {
      num_output: 3
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)pb";

NetParameter Parse(const char* blocks, Phase phase) {
  NetParameter param;
  ParseTextProto(StrCat(kStem, blocks), "residual", &param);
  param.mutable_state()->set_phase(phase);
  return param;
}

// "layers: op" of the forward or backward nodes, without conversions of weights into kernels'
// orders, which other processors may not need.
std::vector<std::string> Ops(const Net& net, Direction direction) {
  std::vector<std::string> ops;
  for (const Node* node : net.graph().ScheduledNodes()) {
    const bool packs =
        node->op.As<ops::PackWeights>() != nullptr || node->op.As<ops::UnpackGradient>() != nullptr;
    if (node->direction != direction || packs) continue;
    std::string text;
    for (const int layer : node->layers)
      text += (text.empty() ? "" : "+") + net.graph().LayerName(layer);
    text += ": " + std::string(node->op.name());
    if (node->op.Attributes().find("relu") != std::string::npos) text += "[relu]";
    ops.push_back(text);
  }
  return ops;
}

TEST(FuseEpiloguesTest, JoinsReluSumsAndNormalisation) {
  const Net net(Parse(kResidualNet, TRAIN), {.keep_all = false, .seed = 1});
  const std::vector<std::string> forward = {"data: HostCall",
                                            "data: Fill",
                                            "conv0: Reorder",
                                            "conv0+relu0: Conv[relu]",
                                            "conv1: Conv",
                                            "bn1+scale1+relu1: BatchNorm[relu]",
                                            "sum+relu2: EltwiseSum[relu]",
                                            "ip: Reorder",
                                            "ip: Gemm",
                                            "loss: Softmax",
                                            "loss: SoftmaxLoss"};
  EXPECT_EQ(Ops(net, Direction::kForward), forward);
  const std::vector<std::string> backward = Ops(net, Direction::kBackward);
  EXPECT_EQ(std::count(backward.begin(), backward.end(), "bn1+scale1+relu1: BatchNormGrad"), 1);
  EXPECT_EQ(std::count(backward.begin(), backward.end(), "relu1: ReluGrad"), 0);
}

// As if a normalisation does not follow a product.
NetOptions Testing() {
  return {
      .keep_all = false, .with_backward = false, .seed = 1, .disabled_passes = {"fold-constants"}};
}

TEST(FuseEpiloguesTest, FusesStatisticsInTesting) {
  const Net net(Parse(kResidualNet, TEST), Testing());
  const std::vector<std::string> forward = Ops(net, Direction::kForward);
  EXPECT_EQ(
      std::count(forward.begin(), forward.end(), "bn1+scale1+relu1: BatchNormInference[relu]"), 1);
}

TEST(FuseEpiloguesTest, LeavesNamedBlobsOfKeepAllNetsAlone) {
  const Net net(Parse(kResidualNet, TRAIN), {.keep_all = true, .seed = 1});
  const std::vector<std::string> forward = Ops(net, Direction::kForward);
  EXPECT_EQ(std::count(forward.begin(), forward.end(), "relu1: Relu"), 1);
}

// Three residual blocks: one with a normalised shortcut, one that ends without ReLU, and one whose
// normalisation has no Scale.
constexpr const char* kResidualBlocks = R"pb(
  layer {
    name: "shortcut"
    type: "Convolution"
    bottom: "conv0"
    top: "shortcut"
    convolution_param {
      num_output: 8
      kernel_size: 1
      bias_term: false
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "bn0" type: "BatchNorm" bottom: "shortcut" top: "shortcut" }
  layer {
    name: "scale0"
    type: "Scale"
    bottom: "shortcut"
    top: "shortcut"
    scale_param { bias_term: true }
  }
  layer {
    name: "conv1"
    type: "Convolution"
    bottom: "conv0"
    top: "conv1"
    convolution_param {
      num_output: 8
      kernel_size: 3
      pad: 1
      bias_term: false
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
  layer {
    name: "scale1"
    type: "Scale"
    bottom: "conv1"
    top: "conv1"
    scale_param { bias_term: true }
  }
  layer { name: "sum1" type: "Eltwise" bottom: "conv1" bottom: "shortcut" top: "sum1" }
  layer { name: "relu1" type: "ReLU" bottom: "sum1" top: "sum1" }
  layer {
    name: "conv2"
    type: "Convolution"
    bottom: "sum1"
    top: "conv2"
    convolution_param {
      num_output: 8
      kernel_size: 3
      pad: 1
      bias_term: false
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "bn2" type: "BatchNorm" bottom: "conv2" top: "conv2" }
  layer {
    name: "scale2"
    type: "Scale"
    bottom: "conv2"
    top: "conv2"
    scale_param { bias_term: true }
  }
  layer { name: "sum2" type: "Eltwise" bottom: "sum1" bottom: "conv2" top: "sum2" }
  layer {
    name: "conv3"
    type: "Convolution"
    bottom: "sum2"
    top: "conv3"
    convolution_param {
      num_output: 8
      kernel_size: 3
      pad: 1
      bias_term: false
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "bn3" type: "BatchNorm" bottom: "conv3" top: "conv3" }
  layer { name: "sum3" type: "Eltwise" bottom: "sum2" bottom: "conv3" top: "sum3" }
  layer { name: "relu3" type: "ReLU" bottom: "sum3" top: "sum3" }
  layer {
    name: "ip"
    type: "InnerProduct"
    bottom: "sum3"
    top: "ip"
    inner_product_param {
      num_output: 3
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)pb";

TEST(FuseEpiloguesTest, JoinsNormalisationAndResiduals) {
  const Net net(Parse(kResidualBlocks, TRAIN), {.keep_all = false, .seed = 1});
  const std::vector<std::string> forward = {
      "data: HostCall", "data: Fill",
      "conv0: Reorder", "conv0: Conv",
      "shortcut: Conv", "bn0+scale0: BatchNorm",
      "conv1: Conv",    "bn1+scale1+sum1+relu1: BatchNorm[relu]",
      "conv2: Conv",    "bn2+scale2+sum2: BatchNorm",
      "conv3: Conv",    "bn3+sum3+relu3: BatchNorm[relu]",
      "ip: Reorder",    "ip: Gemm",
      "loss: Softmax",  "loss: SoftmaxLoss"};
  EXPECT_EQ(Ops(net, Direction::kForward), forward);
  const std::vector<std::string> backward = Ops(net, Direction::kBackward);
  const auto count = [&](const char* op) {
    return std::count(backward.begin(), backward.end(), op);
  };
  for (const char* op : {"bn3+relu3: BatchNormGrad", "bn2+scale2: BatchNormGrad",
                         "bn1+scale1+relu1: BatchNormGrad"}) {
    EXPECT_EQ(count(op), 1) << op;
  }
}

TEST(FuseEpiloguesTest, JoinsStatisticsAndResidualsInTesting) {
  const Net net(Parse(kResidualBlocks, TEST), Testing());
  const std::vector<std::string> forward = Ops(net, Direction::kForward);
  const auto count = [&](const char* op) { return std::count(forward.begin(), forward.end(), op); };
  EXPECT_EQ(count("bn1+scale1+sum1+relu1: BatchNormInference[relu]"), 1);
  EXPECT_EQ(count("bn2+scale2+sum2: BatchNormInference"), 1);
  EXPECT_EQ(count("bn3+sum3+relu3: BatchNormInference[relu]"), 1);
}

TEST(FuseEpiloguesTest, KeepsSumsWhoseTermsOthersNeed) {
  NetParameter param = Parse(kResidualBlocks, TRAIN);
  for (LayerParameter& layer : *param.mutable_layer()) {
    if (layer.name() == "sum2") layer.mutable_eltwise_param()->add_coeff(1);
    if (layer.name() == "sum2") layer.mutable_eltwise_param()->add_coeff(0.5f);
    if (layer.name() == "conv2") layer.set_bottom(0, "conv1");  // sum1's operand has two readers
  }
  const Net net(param, {.keep_all = false, .seed = 1});
  const std::vector<std::string> forward = Ops(net, Direction::kForward);
  const auto count = [&](const char* op) { return std::count(forward.begin(), forward.end(), op); };
  EXPECT_EQ(count("sum1+relu1: EltwiseSum[relu]"), 1);
  EXPECT_EQ(count("sum2: EltwiseSum"), 1);
}

void ExpectSameNumbers(const NetParameter& param) {
  Net fused(param, {.keep_all = false, .seed = 1});
  Net plain(param, {.keep_all = false, .seed = 1, .disabled_passes = {"fuse-epilogues"}});
  Net keep_all(param, {.keep_all = true, .seed = 1});
  const float loss = fused.ForwardBackward();
  for (Net* other : {&plain, &keep_all}) {
    EXPECT_NEAR(other->ForwardBackward(), loss, 1e-5);
    ASSERT_EQ(other->learnable_params().size(), fused.learnable_params().size());
    for (size_t k = 0; k < fused.learnable_params().size(); ++k) {
      const Blob &a = *fused.learnable_params()[k].blob, &b = *other->learnable_params()[k].blob;
      for (int64_t i = 0; i < a.count(); ++i) {
        ASSERT_NEAR(a.cpu_diff()[i], b.cpu_diff()[i], 2e-5)
            << fused.learnable_params()[k].name << "[" << i << "]";
        ASSERT_NEAR(a.cpu_data()[i], b.cpu_data()[i], 1e-6)
            << fused.learnable_params()[k].name << "[" << i << "]";
      }
    }
  }
}

// A net without the pass, and a keep-all net, give the same loss and gradients.
TEST(FuseEpiloguesTest, ChangesNoNumbers) {
  ExpectSameNumbers(Parse(kResidualNet, TRAIN));
  ExpectSameNumbers(Parse(kResidualBlocks, TRAIN));
}

TEST(FuseEpiloguesTest, ChangesNoNumbersInTesting) {
  const NetParameter param = Parse(kResidualBlocks, TEST);
  Net fused(param, {.keep_all = false, .with_backward = false, .seed = 1});
  Net plain(param, {.keep_all = false,
                    .with_backward = false,
                    .seed = 1,
                    .disabled_passes = {"fuse-epilogues"}});
  fused.Forward();
  plain.Forward();
  EXPECT_NEAR(fused.blob_by_name("loss")->cpu_data()[0], plain.blob_by_name("loss")->cpu_data()[0],
              1e-5);
}

}  // namespace
}  // namespace caffe
