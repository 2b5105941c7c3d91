#include "caffe/io/fork_fields.hpp"

#include <gtest/gtest.h>

#include "caffe/io/text_format.hpp"

namespace caffe {
namespace {

// A layer as a fork writes it, with its options under the fork's number.
LayerParameter ForkLayer(const std::string& type, int number,
                         const google::protobuf::Message& options) {
  LayerParameter layer;
  layer.set_name("l");
  layer.set_type(type);
  google::protobuf::UnknownFieldSet* unknown = layer.GetReflection()->MutableUnknownFields(&layer);
  unknown->AddLengthDelimited(number, options.SerializePartialAsString());
  LayerParameter read;  // if the number belongs to another field of ours, it lands there
  EXPECT_TRUE(read.ParseFromString(layer.SerializeAsString()));
  return read;
}

LayerParameter Adopted(const LayerParameter& layer, Dialect dialect = AUTO) {
  NetParameter net;
  net.set_dialect(dialect);
  *net.add_layer() = layer;
  AdoptForkFields("net.caffemodel", &net);
  return net.layer(0);
}

TEST(ForkFieldsTest, UnderAnUnknownNumber) {
  ROIPoolingParameter options;
  options.set_pooled_w(7);
  options.set_spatial_scale(0.0625f);
  const LayerParameter layer = Adopted(ForkLayer("ROIPooling", 8266711, options));
  EXPECT_EQ(layer.roi_pooling_param().pooled_w(), 7u);
  EXPECT_EQ(layer.roi_pooling_param().spatial_scale(), 0.0625f);
  EXPECT_TRUE(layer.GetReflection()->GetUnknownFields(layer).empty());
}

// 137 is embed_param, 143 input_param; 147 is an enum, so that a message there stays unknown.
TEST(ForkFieldsTest, UnderTheNumberOfAnotherField) {
  BNParameter bn;
  bn.set_momentum(0.95f);
  bn.mutable_slope_filler()->set_value(1);
  const LayerParameter of_pspnet = Adopted(ForkLayer("BN", 137, bn));
  EXPECT_EQ(of_pspnet.bn_param().momentum(), 0.95f);
  EXPECT_EQ(of_pspnet.bn_param().slope_filler().value(), 1);
  EXPECT_FALSE(of_pspnet.has_embed_param());

  InterpParameter interp;
  interp.set_height(60);
  interp.set_zoom_factor(8);
  const LayerParameter of_deeplab = Adopted(ForkLayer("Interp", 143, interp));
  EXPECT_EQ(of_deeplab.interp_param().height(), 60);
  EXPECT_EQ(of_deeplab.interp_param().zoom_factor(), 8);
  EXPECT_FALSE(of_deeplab.has_input_param());

  CenterLossParameter center;
  center.set_num_output(10);
  EXPECT_EQ(Adopted(ForkLayer("CenterLoss", 147, center)).center_loss_param().num_output(), 10u);
}

TEST(ForkFieldsTest, TheDialectDecidesAmongSeveral) {
  ROIPoolingParameter here, there;
  here.set_pooled_w(3);
  there.set_pooled_w(5);
  LayerParameter layer = ForkLayer("ROIPooling", 150, here);
  layer.MergeFrom(ForkLayer("ROIPooling", 8266711, there));
  EXPECT_EQ(Adopted(layer, PSPNET).roi_pooling_param().pooled_w(), 3u);
  EXPECT_EQ(Adopted(layer, RCNN).roi_pooling_param().pooled_w(), 5u);
}

TEST(ForkFieldsTest, LeavesTheRestAlone) {
  LayerParameter layer;
  ParseTextProto(
      "name: 'l' type: 'Embed' embed_param { num_output: 3 } transform_param { scale: 2 }", "layer",
      &layer);
  EXPECT_EQ(Adopted(layer).SerializeAsString(), layer.SerializeAsString());
  ParseTextProto("name: 'l' type: 'BN' transform_param { scale: 2 } param { lr_mult: 2 }", "layer",
                 &layer);
  EXPECT_EQ(Adopted(layer).SerializeAsString(), layer.SerializeAsString());
  ParseTextProto("name: 'l' type: 'BN' bn_param { eps: 2 } embed_param { num_output: 3 }", "layer",
                 &layer);
  EXPECT_EQ(Adopted(layer).bn_param().eps(), 2);
}

// Fields that belong to the type in addition to its options.
TEST(ForkFieldsTest, LeavesTheTypesOtherFieldsAlone) {
  LayerParameter layer;
  for (const char* text : {"type: 'FocalLoss' softmax_param { engine: CAFFE }",
                           "type: 'Lstm' recurrent_param { num_output: 3 }"}) {
    ParseTextProto(text, "layer", &layer);
    EXPECT_EQ(Adopted(layer).SerializeAsString(), layer.SerializeAsString()) << text;
  }
}

// A message that cannot be read is dropped, and the layer and its weights stay.
TEST(ForkFieldsTest, DropsWhatItCannotRead) {
  FillerParameter other;  // field 1 is a string, in InterpParameter a number
  other.set_type("xavier");
  LayerParameter layer = ForkLayer("Interp", 2143, other);
  layer.add_blobs()->add_data(1);
  const LayerParameter adopted = Adopted(layer);
  EXPECT_FALSE(adopted.has_interp_param());
  EXPECT_EQ(adopted.blobs_size(), 1);
}

}  // namespace
}  // namespace caffe
