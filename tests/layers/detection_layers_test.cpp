// The SSD layers on examples that are small enough to compute by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using testing::Get;
using ::testing::HasSubstr;
using testing::NetOf;
using testing::Set;
using testing::TemporaryFolder;

std::string Input(const std::string& name, const std::string& dims) {
  return "layer { name: '" + name + "' type: 'Input' top: '" + name + "' input_param { shape { " +
         dims + " } } } ";
}

void ExpectNear(const std::vector<float>& found, const std::vector<float>& want) {
  ASSERT_EQ(found.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-5) << i;
}

TEST(PriorBoxTest, ListsBoxesCellByCell) {
  const auto net = NetOf(Input("map", "dim: 1 dim: 1 dim: 1 dim: 2") +
                         Input("image", "dim: 1 dim: 3 dim: 100 dim: 200") +
                         "layer { name: 'p' type: 'PriorBox' bottom: 'map' bottom: 'image' top: "
                         "'p' prior_box_param { min_size: 20.9 max_size: 45 aspect_ratio: 4 flip: "
                         "true variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 } }");
  net->Forward();
  EXPECT_EQ(net->blob_by_name("p")->shape(), (Shape{1, 2, 2 * 4 * 4}));
  const std::vector<float> p = Get(*net, "p");
  // Cells of 100 x 100 pixels; the first one's centre is at (50, 50) of 200 x 100.
  const auto box = [](float width, float height) {
    return std::vector<float>{(50 - width / 2) / 200, (50 - height / 2) / 100,
                              (50 + width / 2) / 200, (50 + height / 2) / 100};
  };
  ExpectNear({p.begin(), p.begin() + 4}, box(20, 20));
  ExpectNear({p.begin() + 4, p.begin() + 8}, box(30, 30));  // sqrt(20 * 45)
  ExpectNear({p.begin() + 8, p.begin() + 12}, box(40, 10));
  ExpectNear({p.begin() + 12, p.begin() + 16}, box(10, 40));
  EXPECT_NEAR(p[16] - p[0], 0.5, 1e-6);  // the second cell
  ExpectNear({p.begin() + 32, p.begin() + 36}, {0.1f, 0.1f, 0.2f, 0.2f});
}

class DetectionTest : public ::testing::Test {
 protected:
  // Two items, three prior boxes, two classes in addition to background.
  std::unique_ptr<Net> MakeDetector(const std::string& options,
                                    const std::string& threshold = "confidence_threshold: 0.3") {
    auto net = NetOf(
        Input("loc", "dim: 2 dim: 12") + Input("conf", "dim: 2 dim: 9") +
        Input("prior", "dim: 1 dim: 2 dim: 12") + Input("gt", "dim: 1 dim: 1 dim: 2 dim: 8") +
        "layer { name: 'd' type: 'DetectionOutput' bottom: 'loc' bottom: 'conf' bottom: 'prior' "
        "top: 'd' detection_output_param { num_classes: 3 nms_param { nms_threshold: 0.5 } " +
        threshold + " " + options +
        " } } "
        "layer { name: 'e' type: 'DetectionEvaluate' bottom: 'd' bottom: 'gt' top: 'e' "
        "detection_evaluate_param { num_classes: 3 evaluate_difficult_gt: false } }");
    std::vector<float> prior = {0, 0, 0.4f, 0.4f, 0, 0, 0.4f, 0.36f, 0.5f, 0.5f, 1, 1};
    prior.resize(24, 0.1f);
    Set(*net, "prior", prior);
    std::vector<float> loc(24, 0);
    loc[8] = 1;  // the third box of item 0: xmin moves by 0.1
    Set(*net, "loc", loc);
    Set(*net, "conf",
        {0.1f, 0.8f, 0.1f, 0.1f, 0.7f, 0.2f, 0.2f, 0.4f, 0.4f, 0.9f, 0.1f, 0.0f, 0.9f, 0.1f, 0.0f,
         0.4f, 0.1f, 0.5f});
    // Item 0 has an object of class 1 at the first box, item 1 a difficult one of class 2.
    Set(*net, "gt", {0, 1, 0, 0, 0, 0.4f, 0.4f, 0, 1, 2, 0, 0.5f, 0.5f, 1, 1, 1});
    return net;
  }
};

TEST_F(DetectionTest, FindsWhatIsLeftAfterSuppression) {
  const auto net = MakeDetector("");
  net->Forward();
  ExpectNear(Get(*net, "d"), {0, 1, 0.8f, 0,    0,    0.4f, 0.4f,  //
                              0, 1, 0.4f, 0.6f, 0.5f, 1,    1,     //
                              0, 2, 0.4f, 0.6f, 0.5f, 1,    1,     //
                              1, 2, 0.5f, 0.5f, 0.5f, 1,    1});
  // One object of class 1; the difficult one counts neither as found nor as missed.
  ExpectNear(Get(*net, "e"), {-1, 1, 1,    -1, -1,  //
                              -1, 2, 0,    -1, -1,  //
                              0,  1, 0.8f, 1,  0,   //
                              0,  1, 0.4f, 0,  1,   //
                              0,  2, 0.4f, 0,  1,   //
                              1,  2, 0.5f, 0,  0});
  // Other scores give another number of detections.
  Set(*net, "conf", std::vector<float>(18, 0.2f));
  net->Forward();
  EXPECT_EQ(net->blob_by_name("d")->shape(), (Shape{1, 1, 2, 7}));
  ExpectNear(Get(*net, "d"), {0, -1, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1});
  EXPECT_EQ(net->blob_by_name("e")->shape(), (Shape{1, 1, 2, 5}));
}

TEST_F(DetectionTest, KeepsTheBest) {
  const auto net = MakeDetector("keep_top_k: 1");
  net->Forward();
  ExpectNear(Get(*net, "d"), {0, 1, 0.8f, 0, 0, 0.4f, 0.4f, 1, 2, 0.5f, 0.5f, 0.5f, 1, 1});
}

// As in BVLC's SSD: scores that are no probabilities may be negative.
TEST_F(DetectionTest, WithoutAThresholdEachScoreCounts) {
  const auto net = MakeDetector("keep_top_k: 3", "");
  Set(*net, "conf", {0, -1, -9, 0, -2, -9, 0, -3, -4, 0, -8, -9, 0, -9, -5, 0, -6, -9});
  net->Forward();
  const std::vector<float> d = Get(*net, "d");
  ASSERT_EQ(d.size(), 6 * 7);
  const std::vector<float> scores = {d[2], d[9], d[16], d[23], d[30], d[37]};
  ExpectNear(scores, {-1, -3, -4, -6, -8, -5});
}

// Boxes 0 and 1 of item 0 overlap by 0.9, boxes 0 and 2 not at all.
TEST_F(DetectionTest, CandidatesThatOverlapVoteByTheirScores) {
  const auto net = MakeDetector("vote_threshold: 0.9");
  net->Forward();
  const float voted = (0.8f * 0.4f + 0.7f * 0.36f) / 1.5f;
  ExpectNear(Get(*net, "d"), {0, 1, 0.8f, 0,    0,    0.4f, voted,  //
                              0, 1, 0.4f, 0.6f, 0.5f, 1,    1,      //
                              0, 2, 0.4f, 0.6f, 0.5f, 1,    1,      //
                              1, 2, 0.5f, 0.5f, 0.5f, 1,    1});
  Set(*net, "conf",
      {0.1f, INFINITY, 0.1f, 0.1f, 0.7f, 0.2f, 0.2f, 0.4f, 0.4f, 0.9f, 0.1f, 0.0f, 0.9f, 0.1f, 0.0f,
       0.4f, 0.1f, 0.5f});
  net->Forward();
  EXPECT_FLOAT_EQ(Get(*net, "d")[6], 0.4f) << "no mean has an infinite weight";
  const auto strict = MakeDetector("vote_threshold: 0.91");
  strict->Forward();
  EXPECT_FLOAT_EQ(Get(*strict, "d")[6], 0.4f);
}

TEST_F(DetectionTest, RefusesVotesByOverlapsThatCannotBe) {
  for (const char* threshold : {"-0.1", "1.5", "nan"}) {
    EXPECT_THAT(
        ErrorText<InvalidArgument>(
            [&] { MakeDetector(std::string("vote_threshold: ") + threshold); }),
        HasSubstr("vote_threshold is " + std::string(threshold) + "; it must be from 0 to 1"));
  }
}

// Boxes of a few pixels overlap more if pixels are counted. The sizes are used one after the other,
// starting again with the first.
TEST(DetectionEvaluateTest, ComparesInPixelsOfTheImagesThatNameSizeFileNames) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "sizes", "large 1000 1000\nsmall 10 10\n");
  const auto net =
      NetOf(Input("d", "dim: 1 dim: 1 dim: 1 dim: 7") + Input("gt", "dim: 1 dim: 1 dim: 1 dim: 8") +
            "layer { name: 'e' type: 'DetectionEvaluate' bottom: 'd' bottom: 'gt' top: 'e' "
            "detection_evaluate_param { num_classes: 2 name_size_file: '" +
            folder / "sizes" + "' } }");
  Set(*net, "gt", {0, 1, 0, 0, 0, 0.4f, 0.4f, 0});
  Set(*net, "d", {0, 1, 0.9f, 0, 0, 0.4f, 0.16f});
  for (const double is_right : {0, 1, 0}) {  // overlaps of 0.401, 5 x 2.6 / 25 = 0.52 and 0.401
    net->Forward();
    ExpectNear(Get(*net, "e"), {-1, 1, 1, -1, -1, 0, 1, 0.9f, static_cast<float>(is_right),
                                static_cast<float>(1 - is_right)});
  }
}

TEST_F(DetectionTest, WritesWhatItFindsOncePerImage) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "labels", "item { name: 'a' label: 1 } item { name: 'b' label: 2 }");
  WriteFileAtomically(folder / "sizes", "first 100 200\nsecond 10 10\n");
  const auto net = MakeDetector("save_output_param { output_directory: '" + folder.path() +
                                "' output_format: 'VOC' label_map_file: '" + (folder / "labels") +
                                "' name_size_file: '" + (folder / "sizes") + "' }");
  for (int pass = 0; pass < 2; ++pass) {  // in the first pass the top's shape changes
    net->Forward();
    EXPECT_EQ(ReadFile(folder / "a.txt"), "first 0.8 0 0 80 40\nfirst 0.4 120 50 200 100\n");
    EXPECT_EQ(ReadFile(folder / "b.txt"), "first 0.4 120 50 200 100\nsecond 0.5 5 5 10 10\n");
  }
}

TEST_F(DetectionTest, SavesNothingWithoutTheNamesOfClassesOrImages) {
  const TemporaryFolder folder;
  for (const std::string given : {"label_map_file: 'labels'", "name_size_file: 'sizes'", ""}) {
    ::testing::internal::CaptureStderr();
    const auto net = MakeDetector("save_output_param { output_directory: '" + folder.path() +
                                  "' output_format: 'VOC' " + given + " }");
    net->Forward();
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr(given[0] == 'l' ? "but no name_size_file: no detections are saved"
                                          : "but no label_map_file: no detections are saved"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DetectNetTransformationTest, GivesImagesAndGrids) {
  const std::string layer =
      "layer { name: 't' type: 'DetectNetTransformation' bottom: 'image' bottom: 'label' top: 'x' "
      "top: 'grid' detectnet_groundtruth_param { stride: 4 image_size_x: 8 image_size_y: 4 } "
      "transform_param { mean_value: 1 } include { phase: TEST } }";
  NetParameter param;
  ParseTextProto("state { phase: TEST } " + Input("image", "dim: 2 dim: 3 dim: 4 dim: 8") +
                     Input("label", "dim: 2 dim: 1 dim: 3 dim: 16") + layer,
                 "detectnet", &param);
  Net net(param);
  EXPECT_EQ(net.blob_by_name("grid")->shape(), (Shape{2, 9, 1, 2}));
  std::vector<float> labels(2 * 3 * 16);
  labels[1] = labels[48 + 1] = 16;
  labels[48] = 1;                                                  // item 1 has one box
  labels[64] = 4, labels[66] = 4, labels[67] = 4, labels[69] = 1;  // its right half
  Set(net, "label", labels);
  Set(net, "image", std::vector<float>(2 * 3 * 32, 5));
  net.Forward();
  EXPECT_EQ(Get(net, "x"), std::vector<float>(2 * 3 * 32, 4));
  std::vector<float> want(2 * 9 * 2);
  const std::vector<float> cell = {1, 0, 0, 4, 4, 0.25f, 0.25f, 1, 1};
  for (size_t i = 0; i < cell.size(); ++i) want[(9 + i) * 2 + 1] = cell[i];
  EXPECT_EQ(Get(net, "grid"), want);
  labels[48] = 3;
  Set(net, "label", labels);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { net.Forward(); }),
              HasSubstr("item 1 of the batch: the labels start with "
                        "3 boxes of 16 numbers each"));
}

TEST(DetectNetTransformationTest, RefusesAugmentationThatObjectsDoNotFollow) {
  EXPECT_THAT(
      ErrorText<InvalidArgument>([] {
        NetOf(Input("image", "dim: 2 dim: 3 dim: 4 dim: 8") +
              Input("label", "dim: 2 dim: 1 dim: 3 dim: 16") +
              "layer { name: 't' type: 'DetectNetTransformation' bottom: 'image' bottom: 'label' "
              "top: 'x' top: 'grid' transform_param { rotation: 5 } }");
      }),
      HasSubstr("layer 't' (DetectNetTransformation): transform_param { rotation } is for images "
                "with one label each; objects would not follow; use detectnet_augmentation_param"));
}

TEST(MultiBoxLossTest, NeedsAClassForTheBackground) {
  const auto make = [](const std::string& options) {
    NetOf(Input("loc", "dim: 1 dim: 16") + Input("conf", "dim: 1 dim: 8") +
          Input("prior", "dim: 1 dim: 2 dim: 16") + Input("gt", "dim: 1 dim: 1 dim: 1 dim: 8") +
          "layer { name: 'l' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'prior' "
          "bottom: 'gt' top: 'l' multibox_loss_param { num_classes: 2 " +
          options + " } }");
  };
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { make("background_label_id: 2"); }),
              HasSubstr("background_label_id 2 does not fit"));
  EXPECT_THAT(ErrorText<InvalidArgument>(
                  [&] { make("background_label_id: 1 map_object_to_agnostic: true"); }),
              HasSubstr("do not fit into num_classes 2"));
}

TEST(MultiBoxLossTest, CountsMatchesAndTheHardestNegatives) {
  const auto net = NetOf(
      Input("loc", "dim: 1 dim: 16") + Input("conf", "dim: 1 dim: 8") +
      Input("prior", "dim: 1 dim: 2 dim: 16") + Input("gt", "dim: 1 dim: 1 dim: 1 dim: 8") +
      "layer { name: 'l' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'prior' bottom: "
      "'gt' top: 'l' multibox_loss_param { num_classes: 2 neg_pos_ratio: 2 } }");
  std::vector<float> prior = {0,    0,    0.4f, 0.4f, 0.5f, 0,    0.9f, 0.4f,
                              0.0f, 0.5f, 0.4f, 0.9f, 0.5f, 0.5f, 0.9f, 0.9f};
  prior.resize(32, 0.1f);
  Set(*net, "prior", prior);
  Set(*net, "loc", std::vector<float>(16, 0));
  Set(*net, "conf", {0, 0, 0, 1, 0, 2, 3, 0});
  Set(*net, "gt", {0, 1, 0, 0, 0, 0.44f, 0.4f, 0});
  net->Forward();
  // The first box is matched: its right edge is 0.04 / 0.1 off, both classes have equal scores. Of
  // the others, the second and third look most like objects.
  const double location = 0.4 * 0.4 / 2, positive = std::log(2.0);
  const double negatives = std::log(1 + std::exp(1.0)) + std::log(1 + std::exp(2.0));
  EXPECT_NEAR(Get(*net, "l")[0], location + positive + negatives, 1e-5);
  Set(*net, "gt", {0, 7, 0, 0, 0, 0.44f, 0.4f, 0});
  EXPECT_THAT(ErrorText<std::exception>([&] { net->Forward(); }),
              HasSubstr("label 7 of item 0 is outside 0..1"));
  Set(*net, "gt", {-1, -1, -1, -1, -1, -1, -1, -1});  // an image without objects
  net->Forward();
  EXPECT_EQ(Get(*net, "l")[0], 0);
}

}  // namespace
}  // namespace caffe
