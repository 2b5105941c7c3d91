// Segmentation data with the layer names of DeepLab and HED.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "caffe/blob.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "caffe/net.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::ErrorText;
using testing::Get;
using ::testing::HasSubstr;
using testing::NetOf;

class ImageSegDataTest : public ::testing::Test {
 protected:
  ImageSegDataTest() {
    const std::vector<uint8_t> labels = {0, 200, 3};
    std::ofstream(folder_.path("a.png"))
        << data::EncodeImage({{3, 1, 3}, std::vector<uint8_t>(9, 7)}, "png");
    std::ofstream(folder_.path("labels.png")) << data::EncodeImage({{1, 1, 3}, labels}, "png");
    std::ofstream(folder_.path("list.txt")) << "/a.png /labels.png\n";
  }
  std::string Options(const std::string& more) const {
    return "image_data_param { source: '" + folder_.path("list.txt") + "' root_folder: '" +
           folder_.path() + "' " + more + " }";
  }

  std::unique_ptr<Net> NetOfTransform(const std::string& transform,
                                      const std::string& options = "") const {
    return NetOf("layer { name: 'd' type: 'ImageSegData' top: 'data' top: 'label' " +
                 Options("label_type: PIXEL " + options) + " transform_param { " + transform +
                 " } include { phase: TEST } }");
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(ImageSegDataTest, HasTheTopsOfDeepLab) {
  NetParameter definition = testing::ParseNet(
      "layers { name: 'd' type: IMAGE_SEG_DATA top: 'data' top: 'label' top: 'data_dim' " +
      Options("label_type: PIXEL ignore_label: 250") +
      " transform_param { crop_size: 2 mean_value: 7 } include { phase: TEST } }");
  UpgradeNet("deeplab", &definition);
  Net net(definition);
  net.Forward();
  EXPECT_EQ(net.blob_by_name("data")->shape(), (Shape{1, 3, 2, 2}));
  EXPECT_EQ(net.blob_by_name("label")->shape(), (Shape{1, 1, 2, 2}));
  EXPECT_EQ(net.blob_by_name("data_dim")->shape(), (Shape{1, 1, 1, 2}));
  EXPECT_THAT(Get(net, "data"), Each(0));
  EXPECT_THAT(Get(net, "label"), ElementsAre(0, 200, 250, 250));  // the second row is padding
  EXPECT_THAT(Get(net, "data_dim"), ElementsAre(1, 2));
}

TEST_F(ImageSegDataTest, PadsBelowAndToTheRightWithTheMean) {
  for (const char* means : {"mean_value: 5", "mean_value: 5 mean_value: 5 mean_value: 5"}) {
    SCOPED_TRACE(means);
    const auto net = NetOfTransform(StrCat("crop_size: 5 ", means));
    net->Forward();
    const std::vector<float> data = Get(*net, "data");
    const std::vector<float> labels = Get(*net, "label");
    const std::vector<float> row = {2, 2, 2, 0, 0}, row_of_labels = {0, 200, 3, 255, 255};
    for (size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], i % 25 < 5 ? row[i % 25] : 0);
    for (size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(labels[i], i < 5 ? row_of_labels[i] : 255);
  }
}

TEST_F(ImageSegDataTest, PadsWithTheAverageOfTheMeanFile) {
  BlobProto mean;
  std::vector<float> values(48);
  std::iota(values.begin(), values.end(), 0.0f);
  WriteBlobFloats(Shape{1, 3, 4, 4}, values, &mean);
  WriteBinaryProto(folder_.path("mean"), mean);
  const auto net = NetOfTransform("crop_size: 4 mean_file: '" + folder_.path("mean") + "'");
  net->Forward();
  const std::vector<float> data = Get(*net, "data");
  for (size_t i = 0; i < data.size(); ++i) {
    const float average = 7.5f + 16 * static_cast<float>(i / 16);
    EXPECT_EQ(data[i], (i % 16 < 3 ? 7 : average) - values[i]) << i;
  }
}

TEST_F(ImageSegDataTest, PaddingNeedsOneMeanOrOnePerChannel) {
  const auto error_of = [&](const std::string& transform, const std::string& options = "") {
    return ErrorText<Error>([&] { NetOfTransform("crop_size: 4 " + transform, options); });
  };
  EXPECT_THAT(error_of("mean_value: 1 mean_value: 2"),
              HasSubstr("means for 2 channels, but the image to be padded has 3 channels"));
  EXPECT_THAT(error_of("mean_value: 1 mean_value: 2 mean_value: 3", "is_color: false"),
              HasSubstr("means for 3 channels, but the image to be padded has 1 channels"));
  const auto net = NetOfTransform("crop_size: 4");
  net->Forward();
  EXPECT_EQ(Get(*net, "data")[3], 0);
}

TEST_F(ImageSegDataTest, HedsLabelsAre0And1) {
  const auto net = NetOf("layer { name: 'd' type: 'ImageLabelmapData' top: 'data' top: 'label' " +
                         Options("") + " }");
  net->Forward();
  EXPECT_THAT(Get(*net, "label"), ElementsAre(0, 1, 0));
}

TEST_F(ImageSegDataTest, LabelsOfDSSAreNormalizedOrGrey) {
  const auto labels_of = [&](const std::string& options) {
    const auto net = NetOf("layer { name: 'd' type: 'ImageLabelmapData' top: 'data' top: 'label' " +
                           Options(options) + " }");
    net->Forward();
    return Get(*net, "label");
  };
  EXPECT_THAT(labels_of("normalize: true"), ElementsAre(0, 1, 0));
  EXPECT_THAT(labels_of("normalize: false"), ElementsAre(0, 200, 3));
}

TEST_F(ImageSegDataTest, SaysWhatIsWrong) {
  const auto error_of = [&](const std::string& options) {
    return ErrorText<Error>([&] {
      NetOf("layer { name: 'd' type: 'ImageSegData' top: 'data' top: 'label' " + options + " }");
    });
  };
  EXPECT_THAT(error_of(""), HasSubstr("image_data_param { source } is missing"));
  EXPECT_THAT(error_of(Options("ignore_label: 256")), HasSubstr("ignore_label is 256"));
  EXPECT_THAT(error_of(Options("short_side: 9")), HasSubstr("short_side } is for ImageData"));
  // The default of label_type is IMAGE, as in DeepLab.
  EXPECT_THAT(error_of(Options("")), HasSubstr("list.txt:1: '/a.png /labels.png' has no label"));
}

}  // namespace
}  // namespace caffe
