#include "caffe/io/upgrade_net.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

NetParameter Parse(const std::string& text) {
  NetParameter net;
  ParseTextProto(text, "net.prototxt", &net);
  return net;
}

// Expects that `before` upgrades to `after`, and that `after` needs no upgrade.
void ExpectUpgrade(const std::string& before, const std::string& after) {
  NetParameter net = Parse(before);
  EXPECT_TRUE(UpgradeNet("net.prototxt", &net));
  EXPECT_EQ(net.DebugString(), Parse(after).DebugString());
  EXPECT_FALSE(UpgradeNet("net.prototxt", &net));
}

std::string UpgradeError(const std::string& text) {
  NetParameter net = Parse(text);
  return ErrorText<InvalidArgument>([&] { UpgradeNet("net.prototxt", &net); });
}

TEST(UpgradeNetTest, TurnsV1LayersIntoLayers) {
  ExpectUpgrade(
      R"(layers { name: "c" type: CONVOLUTION bottom: "x" top: "y" param: "w" param: "b"
           blob_share_mode: PERMISSIVE blobs_lr: 1 blobs_lr: 2 weight_decay: 1 weight_decay: 0
           convolution_param { num_output: 4 kernel_size: 3 } include { phase: TRAIN }
           exclude { stage: "s" } blobs { data: 1 data: 2 } }
         layers { type: SOFTMAX_LOSS loss_weight: 0.5 loss_param { ignore_label: 255 } })",
      R"(layer { name: "c" type: "Convolution" bottom: "x" top: "y"
           param { name: "w" share_mode: PERMISSIVE lr_mult: 1 decay_mult: 1 }
           param { name: "b" lr_mult: 2 decay_mult: 0 }
           convolution_param { num_output: 4 kernel_size: 3 } include { phase: TRAIN }
           exclude { stage: "s" } blobs { data: 1 data: 2 } }
         layer { type: "SoftmaxWithLoss" loss_weight: 0.5 loss_param { ignore_label: 255 } })");
}

TEST(UpgradeNetTest, KnowsTheTypeNameOfEveryV1Type) {
  const char* const expected[] = {"",
                                  "Accuracy",
                                  "BNLL",
                                  "Concat",
                                  "Convolution",
                                  "Data",
                                  "Dropout",
                                  "EuclideanLoss",
                                  "Flatten",
                                  "HDF5Data",
                                  "HDF5Output",
                                  "Im2col",
                                  "ImageData",
                                  "InfogainLoss",
                                  "InnerProduct",
                                  "LRN",
                                  "MultinomialLogisticLoss",
                                  "Pooling",
                                  "ReLU",
                                  "Sigmoid",
                                  "Softmax",
                                  "SoftmaxWithLoss",
                                  "Split",
                                  "TanH",
                                  "WindowData",
                                  "Eltwise",
                                  "Power",
                                  "SigmoidCrossEntropyLoss",
                                  "HingeLoss",
                                  "MemoryData",
                                  "ArgMax",
                                  "Threshold",
                                  "DummyData",
                                  "Slice",
                                  "MVN",
                                  "AbsVal",
                                  "Silence",
                                  "ContrastiveLoss",
                                  "Exp",
                                  "Deconvolution",
                                  "ImageSegData"};
  const auto* const types = V1LayerParameter::LayerType_descriptor();
  for (int i = 0; i < types->value_count(); ++i) {
    NetParameter net;
    net.add_layers()->set_type(static_cast<V1LayerParameter::LayerType>(types->value(i)->number()));
    UpgradeNet("net.prototxt", &net);
    EXPECT_EQ(net.layer(0).type(), expected[i]);
  }
}

TEST(UpgradeNetTest, HasAPlaceForEveryV1Field) {
  const auto* v1 = V1LayerParameter::descriptor();
  for (int i = 0; i < v1->field_count(); ++i) {
    NetParameter net;
    V1LayerParameter* layer = net.add_layers();
    const auto* field = v1->field(i);
    const auto* reflection = layer->GetReflection();
    if (field->name() == "layer" || !field->message_type()) continue;
    if (field->is_repeated()) {
      reflection->AddMessage(layer, field);
    } else {
      reflection->MutableMessage(layer, field);
    }
    ASSERT_NO_THROW(UpgradeNet("net.prototxt", &net)) << field->name();
    EXPECT_THAT(net.DebugString(), HasSubstr(field->name() + " {"));
  }
}

TEST(UpgradeNetTest, MovesTransformFieldsOutOfDataParameters) {
  ExpectUpgrade(R"(layers { type: DATA data_param { source: "db" scale: 0.5 mirror: true
                     crop_size: 7 mean_file: "m" } })",
                R"(layer { type: "Data" data_param { source: "db" } transform_param {
                     scale: 0.5 mirror: true crop_size: 7 mean_file: "m" } })");
  ExpectUpgrade(R"(layers { type: IMAGE_DATA image_data_param { crop_size: 7 scale: 2 }
                     transform_param { scale: 3 mirror: true } })",
                R"(layer { type: "ImageData" image_data_param { }
                     transform_param { scale: 2 crop_size: 7 mirror: true } })");
}

TEST(UpgradeNetTest, LeavesTransformFieldsInDataParametersOfALayerWithoutEffect) {
  NetParameter net = Parse(R"(layer { type: "Data" data_param { scale: 0.5 crop_size: 7 } })");
  EXPECT_FALSE(UpgradeNet("net.prototxt", &net));
  EXPECT_FALSE(net.layer(0).has_transform_param());
}

TEST(UpgradeNetTest, TurnsInputFieldsIntoAnInputLayerPlacedFirst) {
  ExpectUpgrade(R"(input: "a" input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4
                   input: "b" input_dim: 5 input_dim: 6 input_dim: 7 input_dim: 8
                   layer { name: "x" } layer { name: "y" })",
                R"(layer { name: "input" type: "Input" top: "a" top: "b" input_param {
                     shape { dim: 1 dim: 2 dim: 3 dim: 4 } shape { dim: 5 dim: 6 dim: 7 dim: 8 } } }
                   layer { name: "x" } layer { name: "y" })");
  ExpectUpgrade(R"(input: "a" input_shape { dim: 10 dim: 2 } layers { name: "x" type: RELU })",
                R"(layer { name: "input" type: "Input" top: "a" input_param {
                     shape { dim: 10 dim: 2 } } }
                   layer { name: "x" type: "ReLU" })");
}

TEST(UpgradeNetTest, SetsMultipliersOfBatchNormStatisticsToZero) {
  ExpectUpgrade(R"(layer { type: "BatchNorm" param { lr_mult: 0 } param { name: "v" } param { } })",
                R"(layer { type: "BatchNorm" param { lr_mult: 0 decay_mult: 0 }
                     param { name: "v" lr_mult: 0 decay_mult: 0 }
                     param { lr_mult: 0 decay_mult: 0 } })");
}

TEST(UpgradeNetTest, TurnsHolesIntoDilation) {
  ExpectUpgrade("layers { type: CONVOLUTION convolution_param { hole: 2 kernel_size: 3 } }",
                "layer { type: 'Convolution' convolution_param { dilation: 2 kernel_size: 3 } }");
  ExpectUpgrade("layer { type: 'Convolution' convolution_param { hole_h: 2 hole_w: 4 } }",
                "layer { type: 'Convolution' convolution_param { dilation: 2 dilation: 4 } }");
  const auto error_of = [](const std::string& options) {
    return UpgradeError("layer { name: 'c' type: 'Convolution' convolution_param { " + options +
                        " } }");
  };
  EXPECT_THAT(error_of("hole: 2 dilation: 2"),
              HasSubstr("layer 'c' (Convolution): convolution_param has dilation and its older"));
  EXPECT_THAT(error_of("hole: 2 hole_h: 2 hole_w: 2"), HasSubstr("hole and hole_h, hole_w"));
  EXPECT_THAT(error_of("hole_w: 2"), HasSubstr("one of hole_h and hole_w; give both"));
}

TEST(UpgradeNetTest, PutsBlobsOfOldBatchNormFilesInTodaysOrder) {
  ExpectUpgrade(R"(layer { type: "BatchNorm"
                     blobs { shape { dim: 1 dim: 2 dim: 1 dim: 1 } data: 1 data: 2 }
                     blobs { num: 1 channels: 2 height: 1 width: 1 data: 3 data: 4 }
                     blobs { shape { dim: 2 } data: 5 data: 6 }
                     blobs { shape { dim: 2 } data: 7 data: 8 }
                     blobs { shape { dim: 1 } data: 0 } })",
                R"(layer { type: "BatchNorm"
                     blobs { shape { dim: 2 } data: 5 data: 6 }
                     blobs { shape { dim: 2 } data: 7 data: 8 }
                     blobs { shape { dim: 1 } data: 1 }
                     blobs { shape { dim: 2 } data: 1 data: 2 }
                     blobs { shape { dim: 2 } data: 3 data: 4 } })");
}

TEST(UpgradeNetTest, LeavesTodaysDefinitionsAlone) {
  const std::string text = R"(name: "n" layer { name: "b" type: "BatchNorm" param { lr_mult: 1 } }
      layer { type: "Data" data_param { batch_size: 2 } transform_param { mirror: true } })";
  NetParameter net = Parse(text);
  EXPECT_FALSE(UpgradeNet("net.prototxt", &net));
  EXPECT_EQ(net.DebugString(), Parse(text).DebugString());
}

TEST(UpgradeNetTest, ConvertsV0Layers) {
  ExpectUpgrade(
      R"(layers { top: "d" layer { name: "data" type: "data" source: "db" meanfile: "m"
           batchsize: 9 cropsize: 7 mirror: true scale: 0.5 rand_skip: 3 } }
         layers { bottom: "d" top: "c" layer { name: "conv" type: "conv" num_output: 4
           biasterm: false kernelsize: 3 stride: 2 group: 2 weight_filler { type: "xavier" }
           blobs_lr: 1 blobs_lr: 2 weight_decay: 1 weight_decay: 0 } }
         layers { bottom: "c" top: "p" layer { name: "pool" type: "pool" pool: AVE kernelsize: 3
           stride: 2 } }
         layers { bottom: "p" top: "n" layer { name: "norm" type: "lrn" local_size: 3 alpha: 2
           beta: 0.5 } })",
      R"(layer { name: "data" type: "Data" top: "d" data_param { source: "db" batch_size: 9
           rand_skip: 3 } transform_param { scale: 0.5 mirror: true crop_size: 7 mean_file: "m" } }
         layer { name: "conv" type: "Convolution" bottom: "d" top: "c"
           param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
           convolution_param { num_output: 4 bias_term: false kernel_size: 3 stride: 2 group: 2
           weight_filler { type: "xavier" } } }
         layer { name: "pool" type: "Pooling" bottom: "c" top: "p" pooling_param { pool: AVE
           kernel_size: 3 stride: 2 } }
         layer { name: "norm" type: "LRN" bottom: "p" top: "n" lrn_param { local_size: 3 alpha: 2
           beta: 0.5 } })");
}

TEST(UpgradeNetTest, FoldsV0PaddingIntoItsReader) {
  ExpectUpgrade(R"(layers { bottom: "x" top: "padded" layer { name: "p" type: "padding" pad: 2 } }
                   layers { bottom: "padded" top: "y" layer { name: "c" type: "conv"
                     kernelsize: 5 } })",
                R"(layer { name: "c" type: "Convolution" bottom: "x" top: "y"
                     convolution_param { pad: 2 kernel_size: 5 } })");
  EXPECT_THAT(
      UpgradeError(R"(layers { bottom: "x" top: "q" layer { name: "p" type: "padding" pad: 2 } }
                      layers { bottom: "q" top: "y" layer { name: "r" type: "relu" } })"),
      HasSubstr("layer 'r' (relu) reads padding layer 'p'"));
}

TEST(UpgradeNetTest, RefusesWhatIsNeitherFormAndNamesBothNumbers) {
  EXPECT_THAT(UpgradeError("layers { } layers { } layer { }"),
              HasSubstr("net.prototxt: has 2 old 'layers' and 1 'layer'"));
  EXPECT_THAT(UpgradeError("input: 'a' input: 'b' input_dim: 1 input_dim: 2 input_dim: 3"),
              HasSubstr("has 2 input and 3 input_dim; each input takes 4"));
  EXPECT_THAT(UpgradeError("input: 'a' input: 'b' input_shape { }"),
              HasSubstr("has 2 input but 1 input_shape"));
  EXPECT_THAT(UpgradeError("layers { layer { name: 'a' type: 'Relu' } }"),
              HasSubstr("layer 'a': 'Relu' is not a type of the oldest (V0)"));
}

}  // namespace
}  // namespace caffe
