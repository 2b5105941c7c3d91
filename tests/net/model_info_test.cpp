#include "caffe/model_info.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;

class ModelInfoTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_.path("db")); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path(name)) << text;
  }
  ModelInfo InfoOf(const std::string& transform, const std::string& more = "") const {
    NetParameter net;
    ParseTextProto(
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN } "
        "transform_param { mean_value: 7 } data_param { source: '/no/such' batch_size: 1 } } "
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TEST } "
        "transform_param { " +
            transform + " } data_param { source: '" + folder_.path("db") + "' batch_size: 1 } } " +
            more,
        "test", &net);
    return DescribeModel(net);
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(ModelInfoTest, IsWhatTheTestDataTells) {
  Write("db/labels.txt", "cat\ndog\n");
  const ModelInfo info = InfoOf(
      "mean_value: 1 mean_value: 2 mean_value: 3 scale: 0.5 "
      "resize_param { height: 20 width: 30 prob: 1 interp_mode: LINEAR }");
  EXPECT_THAT(info.label(), ElementsAre("cat", "dog"));
  EXPECT_THAT(info.mean_value(), ElementsAre(1, 2, 3));
  EXPECT_EQ(info.scale(), 0.5f);
  EXPECT_EQ(info.resize().height(), 20);
  EXPECT_EQ(info.resize().interp_mode_size(), 0);
}

TEST_F(ModelInfoTest, TheDatabaseSaysHowItsImagesWereResized) {
  Write("db/model_info.prototxt", "label: 'a' resize { height: 64 width: 64 }");
  Write("db/labels.txt", "b\n");
  const ModelInfo info = InfoOf("");
  EXPECT_THAT(info.label(), ElementsAre("a"));
  EXPECT_EQ(info.resize().width(), 64);
  EXPECT_EQ(info.mean_value_size(), 0);
}

TEST_F(ModelInfoTest, WhatTheNetSaysItselfCounts) {
  Write("db/labels.txt", "cat\ndog\n");
  const ModelInfo info =
      InfoOf("mean_value: 1 scale: 2", "model_info { label: 'x' mean_value: 4 mean_value: 5 }");
  EXPECT_THAT(info.label(), ElementsAre("x"));
  EXPECT_THAT(info.mean_value(), ElementsAre(4, 5));
  EXPECT_EQ(info.scale(), 2);
}

TEST_F(ModelInfoTest, AMeanImageIsPartOfIt) {
  BlobProto mean;
  for (const int dim : {1, 1, 2, 1}) mean.mutable_shape()->add_dim(dim);
  mean.add_data(3);
  mean.add_data(4);
  WriteBinaryProto(folder_.path("mean.binaryproto"), mean);
  const ModelInfo info = InfoOf("mean_file: '" + folder_.path("mean.binaryproto") + "'");
  EXPECT_THAT(info.mean().data(), ElementsAre(3, 4));
  ModelInfo over;
  over.add_mean_value(1);
  EXPECT_FALSE(MergedModelInfo(info, over).has_mean());
}

TEST_F(ModelInfoTest, PeopleAreNotShownThePixelsOfTheMean) {
  NetParameter net;
  ParseTextProto("name: 'n' model_info { label: 'cat' mean { data: 1 data: 2 } }", "test", &net);
  EXPECT_EQ(WithoutMeanImage(net).ShortDebugString(), "name: \"n\" model_info { label: \"cat\" }");
  net.mutable_model_info()->clear_label();
  EXPECT_FALSE(WithoutMeanImage(net).has_model_info());
}

TEST_F(ModelInfoTest, WithoutDataNothingIsKnown) {
  EXPECT_EQ(InfoOf("").ByteSizeLong(), 0);
  EXPECT_EQ(DescribeModel(NetParameter()).ByteSizeLong(), 0);
}

}  // namespace
}  // namespace caffe
