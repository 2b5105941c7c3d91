#include "caffe/deploy.hpp"

#include <gmock/gmock.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

NetParameter DeployOf(const std::string& text, const std::vector<std::string>& inputs = {}) {
  NetParameter param;
  ParseTextProto("name: 'n' " + text, "test", &param);
  param.mutable_state()->set_phase(TEST);
  const Net net(param, {.keep_all = false, .with_backward = false, .allocate = false});
  NetParameter deploy = DeployNet(net, inputs);
  // The result is a valid net.
  const Net built(deploy, {.allocate = false});
  return deploy;
}

std::vector<std::string> NamesIn(const NetParameter& net) {
  std::vector<std::string> names;
  for (const LayerParameter& layer : net.layer())
    names.push_back(layer.name() + ":" + layer.type());
  return names;
}

constexpr const char* kData = R"(
  layer { name: 'data' type: 'DummyData' top: 'data' top: 'label'
          dummy_data_param { shape { dim: 5 dim: 3 dim: 8 dim: 8 } shape { dim: 5 } } }
  layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' include { phase: TEST }
          inner_product_param { num_output: 4 } }
  layer { name: 'relu' type: 'ReLU' bottom: 'ip' top: 'ip' })";

TEST(DeployTest, ScoresBecomeProbabilities) {
  const NetParameter net = DeployOf(std::string(kData) + R"(
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }
    layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'accuracy' })");
  EXPECT_THAT(NamesIn(net),
              ElementsAre("data:Input", "ip:InnerProduct", "relu:ReLU", "prob:Softmax"));
  EXPECT_THAT(net.layer(0).top(), ElementsAre("data"));
  EXPECT_THAT(net.layer(0).input_param().shape(0).dim(), ElementsAre(1, 3, 8, 8));
  EXPECT_EQ(net.layer(1).include_size(), 0);
  EXPECT_EQ(net.layer(3).bottom(0), "ip");
  EXPECT_FALSE(net.has_state());
}

// Like GoogLeNet's, which help the layers before them to learn.
TEST(DeployTest, LossesInTheMiddleAreNoAnswers) {
  const NetParameter net = DeployOf(std::string(kData) + R"(
    layer { name: 'side' type: 'InnerProduct' bottom: 'ip' top: 'side'
            inner_product_param { num_output: 4 } }
    layer { name: 'side_loss' type: 'SoftmaxWithLoss' bottom: 'side' bottom: 'label' top: 'l1' }
    layer { name: 'end' type: 'InnerProduct' bottom: 'ip' top: 'end'
            inner_product_param { num_output: 4 } }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'end' bottom: 'label' top: 'l2' })");
  EXPECT_THAT(NamesIn(net), ElementsAre("data:Input", "ip:InnerProduct", "relu:ReLU",
                                        "end:InnerProduct", "prob:Softmax"));
}

TEST(DeployTest, EachLabelHasItsAnswer) {
  const NetParameter net = DeployOf(R"(
    layer { name: 'data' type: 'HDF5Data' top: 'data' top: 'kind' top: 'size' include { phase: TRAIN }
            hdf5_data_param { source: '/no/such' batch_size: 2 } }
    layer { name: 'data' type: 'Input' top: 'data' top: 'kind' top: 'size' include { phase: TEST }
            input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } shape { dim: 2 dim: 1 } } }
    layer { name: 'a' type: 'InnerProduct' bottom: 'data' top: 'a' inner_product_param { num_output: 4 } }
    layer { name: 'b' type: 'InnerProduct' bottom: 'data' top: 'b' inner_product_param { num_output: 1 } }
    layer { name: 'la' type: 'SoftmaxWithLoss' bottom: 'a' bottom: 'kind' top: 'la' loss_weight: 2
            softmax_param { axis: 1 } }
    layer { name: 'lb' type: 'EuclideanLoss' bottom: 'b' bottom: 'size' top: 'lb' })");
  EXPECT_THAT(NamesIn(net),
              ElementsAre("data:Input", "a:InnerProduct", "b:InnerProduct", "prob:Softmax"));
  EXPECT_TRUE(net.layer(3).softmax_param().has_axis());
}

TEST(DeployTest, WhatIsMadeOfLabelsGoesWithThem) {
  const NetParameter net = DeployOf(std::string(kData) + R"(
    layer { name: 'twice' type: 'Power' bottom: 'label' top: 'twice' power_param { scale: 2 } }
    layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'twice' top: 'loss' })");
  EXPECT_THAT(NamesIn(net),
              ElementsAre("data:Input", "ip:InnerProduct", "relu:ReLU", "prob:Softmax"));
}

TEST(DeployTest, MixupIsForTraining) {
  const std::string end = R"(
    layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip'
            inner_product_param { num_output: 4 } }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'shares' top: 'loss' })";
  const std::string data = R"(
    layer { name: 'in' type: 'DummyData' top: 'x' top: 'label'
            dummy_data_param { shape { dim: 5 dim: 3 dim: 8 dim: 8 } shape { dim: 5 } } }
    layer { name: 'mix' type: 'Mixup' bottom: 'x' bottom: 'label' top: 'x' top: 'shares'
            mixup_param { num_classes: 4 } })";
  EXPECT_THAT(NamesIn(DeployOf(data + end)),
              ElementsAre("in:Input", "ip:InnerProduct", "prob:Softmax"));
  const std::string renamed = R"(
    layer { name: 'in' type: 'DummyData' top: 'raw' top: 'label'
            dummy_data_param { shape { dim: 5 dim: 3 dim: 8 dim: 8 } shape { dim: 5 } } }
    layer { name: 'mix' type: 'Mixup' bottom: 'raw' bottom: 'label' top: 'x' top: 'shares'
            mixup_param { num_classes: 4 } })";
  const std::string accuracy =
      "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'accuracy' }";
  EXPECT_THAT(NamesIn(DeployOf(renamed + end + accuracy)),
              ElementsAre("in:Input", "mix:Split", "ip:InnerProduct", "prob:Softmax"));
}

TEST(DeployTest, InputsMayBeNamed) {
  const std::string net = R"(
    layer { name: 'd' type: 'DummyData' top: 'data' top: 'info' top: 'label'
            dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 3 } shape { dim: 2 dim: 3 } } }
    layer { name: 'sum' type: 'Eltwise' bottom: 'data' bottom: 'info' top: 'sum' }
    layer { name: 'loss' type: 'EuclideanLoss' bottom: 'sum' bottom: 'label' top: 'loss' })";
  EXPECT_THAT(DeployOf(net, {"data", "info"}).layer(0).top(), ElementsAre("data", "info"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { DeployOf(net); }),
              HasSubstr("nothing is left without what depends on its labels"));
  EXPECT_THAT(
      ErrorText<InvalidArgument>([&] { DeployOf(net, {"dota"}); }),
      HasSubstr("input 'dota' is made by no data layer of net 'n'; they make data, info, label"));
}

TEST(DeployTest, RefusesNetsForInference) {
  EXPECT_THAT(
      ErrorText<InvalidArgument>([&] {
        DeployOf(R"(layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 } } }
                            layer { name: 'y' type: 'ReLU' bottom: 'x' top: 'y' })");
      }),
      HasSubstr("it is for inference already"));
}

}  // namespace
}  // namespace caffe
