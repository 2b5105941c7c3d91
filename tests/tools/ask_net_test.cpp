// Runs caffe classify, caffe detect and caffe segment as programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;

// Nets without weights: the class scores are the means of the channels, and the detector finds one
// object in the middle.
constexpr const char* kColors = R"(
  layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 6 } } }
  layer { name: "pool" type: "Pooling" bottom: "data" top: "color"
          pooling_param { pool: AVE global_pooling: true } })";
constexpr const char* kDetector = R"(
  layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 32 dim: 32 } } }
  layer { name: "pool" type: "Pooling" bottom: "data" top: "pool"
          pooling_param { pool: AVE global_pooling: true } }
  layer { name: "prior" type: "PriorBox" bottom: "pool" bottom: "data" top: "prior"
          prior_box_param { min_size: 16 variance: 0.1 } }
  layer { name: "heads" type: "DummyData" top: "loc" top: "conf"
          dummy_data_param { shape { dim: 1 dim: 4 } shape { dim: 1 dim: 2 }
                             data_filler { value: 0 } data_filler { value: 0.875 } } }
  layer { name: "out" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "prior" top: "out"
          detection_output_param { num_classes: 2 keep_top_k: 5 confidence_threshold: 0.1
                                   nms_param { nms_threshold: 0.45 } } })";

// The scores of a pixel's classes are its colours.
constexpr const char* kPixels = R"(
  layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 6 } } }
  layer { name: "scores" type: "Power" bottom: "data" top: "scores" })";

class AskNetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("colors.prototxt", kColors);
    Write("detector.prototxt", kDetector);
    Write("pixels.prototxt", kPixels);
    Write("colors.txt", "blue\ngreen\nred\n");
    Paint("blue.png", {200, 10, 20});
    Paint("red.png", {30, 60, 240});
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path(name)) << text;
  }
  void Paint(const std::string& name, const cv::Scalar& color) const {
    cv::imwrite(folder_.path(name), cv::Mat(32, 64, CV_8UC3, color));
  }
  Outcome Run(const std::string& command) const {
    return testing::RunProgram(folder_.path(""), "caffe " + command);
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(AskNetTest, AnImageThatIsNotThereIsNamedOnce) {
  EXPECT_THAT(Run("classify colors.prototxt missing.png").output,
              AllOf(HasSubstr("missing.png: cannot open: No such file or directory"),
                    Not(HasSubstr("missing.png: missing.png"))));
}

TEST_F(AskNetTest, ClassifyPrintsTheLikeliestClassesOfEachImage) {
  const Outcome outcome =
      Run("classify colors.prototxt blue.png red.png --labels=colors.txt --top=2");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("---------- blue.png ----------\n"
                                        "200.0000 - \"blue\"\n20.0000 - \"red\"\n"
                                        "---------- red.png ----------\n"
                                        "240.0000 - \"red\"\n60.0000 - \"green\"\n"));
}

TEST_F(AskNetTest, WhatTheNetKnowsNeedsNoFlags) {
  Write("known.prototxt",
        std::string("model_info { label: 'blue' label: 'green' label: 'red' "
                    "mean_value: 100 mean_value: 10 mean_value: 20 scale: 0.5 } ") +
            kColors);
  const Outcome outcome = Run("classify known.prototxt blue.png --top=1");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("50.0000 - \"blue\""));
  // The user's options take precedence.
  EXPECT_THAT(Run("classify known.prototxt blue.png --top=1 --mean_values=0 --scale=1").output,
              HasSubstr("200.0000 - \"blue\""));
  Write("names.txt", "a\nb\nc\n");
  EXPECT_THAT(Run("classify known.prototxt blue.png --top=1 --labels=names.txt").output,
              HasSubstr("50.0000 - \"a\""));
}

TEST_F(AskNetTest, ImagesAreResizedAsTheNetKnows) {
  // The left half is blue; the centre of 4x6 in an image of 4x12 contains half of each half.
  cv::Mat image(32, 96, CV_8UC3, cv::Scalar(240, 0, 0));
  image.colRange(48, 96).setTo(cv::Scalar(0, 0, 240));
  cv::imwrite(folder_.path("halves.png"), image);
  const std::string resize =
      "model_info { resize { resize_mode: FIT_SMALL_SIZE height: HEIGHT } } ";
  const auto run = [&](const char* height) {
    std::string known = resize;
    Write("known.prototxt", known.replace(known.find("HEIGHT"), 6, height) + kColors);
    return Run("classify known.prototxt halves.png --top=3");
  };
  EXPECT_THAT(run("4").output, HasSubstr("120.0000 - \"0\"\n120.0000 - \"2\""));
  EXPECT_THAT(run("2").output,
              HasSubstr("the shorter side is 2, less than the net's input of 4x6"));
}

TEST_F(AskNetTest, AModelOfTheZooKnowsItsClassesAndItsInput) {
  std::filesystem::create_directory(folder_.path("zoo"));
  Write("zoo/deploy.prototxt", kColors);
  Write("zoo/model_info.prototxt", "mean_value: 100 mean_value: 10 mean_value: 20");
  Write("zoo/README.md",
        "---\ncaffemodel: w.caffemodel\ncaffemodel_url: http://127.0.0.1/w\nsha1: "
        "9116a64c0fbe4459d18f4bb6b56d647b63920377\nlabels: ../colors.txt\n---\n");
  EXPECT_THAT(Run("classify zoo blue.png").output,
              HasSubstr("zoo: holds no weights yet; get those that are published: caffe "
                        "fetch-weights zoo"));
  NetParameter weights;
  weights.add_layer()->set_name("pool");
  WriteBinaryProto(folder_.path("zoo/w.caffemodel"), weights);
  EXPECT_THAT(Run("classify zoo blue.png --top=1").output, HasSubstr("100.0000 - \"blue\""));
}

TEST_F(AskNetTest, AFolderWithoutAModelIsRefused) {
  EXPECT_THAT(
      Run("classify . blue.png").output,
      HasSubstr("is a folder without a solver.prototxt, so it holds no model; `caffe new`"));
}

TEST_F(AskNetTest, BatchesGiveWhatSingleImagesGive) {
  const std::string rest = " --minloglevel=2 blue.png red.png blue.png";
  const Outcome one = Run("classify colors.prototxt" + rest);
  const Outcome two = Run("classify colors.prototxt --batch=2" + rest);
  EXPECT_EQ(one.status, 0) << one.output;
  EXPECT_THAT(one.output, HasSubstr("240.0000"));
  EXPECT_EQ(one.output, two.output);
  EXPECT_THAT(Run("classify colors.prototxt --json" + rest).output, HasSubstr("\"score\": 240"));
}

TEST_F(AskNetTest, ImagesAreTransformedAsOptionsOrTheDataLayerSay) {
  Write(
      "train_val.prototxt",
      "layer { name: 'd' type: 'Data' top: 'data' include { phase: TEST } data_param { source: 'x' "
      "batch_size: 1 } transform_param { mean_value: 100 mean_value: 10 mean_value: 20 scale: 0.5 "
      "mirror: true crop_size: 3 } }");
  const Outcome data = Run("classify colors.prototxt blue.png --data=train_val.prototxt --top=1");
  EXPECT_THAT(data.output, HasSubstr("50.0000 - \"0\""));
  const Outcome options =
      Run("classify colors.prototxt blue.png --mean_values=100,10,20 --scale=0.1 --top=1");
  EXPECT_THAT(options.output, HasSubstr("10.0000 - \"0\""));
  const Outcome both =
      Run("classify colors.prototxt blue.png --data=train_val.prototxt --mean_values=0 --top=1");
  EXPECT_THAT(both.output, HasSubstr("100.0000 - \"0\""));
}

TEST_F(AskNetTest, FoldersAndListsNameImages) {
  Write("list.txt", "red.png 7\nblue.png\n");
  const Outcome list =
      Run("classify colors.prototxt --image_list=list.txt --top=1 --labels=colors.txt");
  EXPECT_THAT(list.output, AllOf(HasSubstr("red.png"), HasSubstr("blue.png")));
  EXPECT_EQ(Run("classify colors.prototxt --image_list=list.txt --batch=2 --short_side=8").status,
            0);
  // The converters and ImageData read lists in this form.
  Write("spaces.txt", "red.png\t7\nblue.png  1 \nred.png \t\r\n");
  EXPECT_EQ(Run("classify colors.prototxt --image_list=spaces.txt").status, 0);
  ASSERT_EQ(std::system(("mkdir " + folder_.path("photos") + " && mv " + folder_.path("red.png") +
                         " " + folder_.path("photos/deep.png"))
                            .c_str()),
            0);
  EXPECT_THAT(Run("classify colors.prototxt photos --top=1").output,
              HasSubstr("photos/deep.png ----------\n240.0000 - \"2\""));
}

TEST_F(AskNetTest, ImagesThatCannotBeReadAreNamedAndTheOthersAnswered) {
  Write("broken.png", "no image");
  const Outcome outcome = Run("classify colors.prototxt broken.png blue.png gone.png --top=1");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("broken.png: cannot decode the image"), HasSubstr("gone.png"),
                    HasSubstr("200.0000"), HasSubstr("2 of the images could not be read")));
}

TEST_F(AskNetTest, AnImageOfAnyShapeFindsItsPlaceInALongInput) {
  cv::imwrite(folder_.path("tall.png"), cv::Mat(90, 20, CV_8UC3, cv::Scalar(7, 8, 9)));
  const Outcome outcome =
      Run("classify colors.prototxt tall.png blue.png --short_side=4 --top=1 --labels=colors.txt");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("9.0000 - \"red\""), HasSubstr("200.0000")));
}

TEST_F(AskNetTest, BoxesAreInThePartThatTheNetHasSeen) {
  // The detector finds the middle half of its input, which is all of the image, or its centre.
  EXPECT_THAT(Run("detect detector.prototxt red.png").output, HasSubstr(" 16 8 48 24"));
  EXPECT_THAT(Run("detect detector.prototxt red.png --short_side=32").output,
              HasSubstr(" 24 8 40 24"));
  EXPECT_THAT(Run("detect detector.prototxt red.png --short_side=64").output,
              HasSubstr(" 28 12 36 20"));
}

TEST_F(AskNetTest, LabelMapsMayBeginWithComments) {
  Write("map.prototxt", "# classes\nitem { name: 'b' label: 0 display_name: 'blueish' }\n");
  EXPECT_THAT(Run("classify colors.prototxt blue.png --top=1 --labels=map.prototxt").output,
              HasSubstr("blueish"));
}

TEST_F(AskNetTest, WrongOptionsAreNamed) {
  const auto expect = [&](const std::string& command, const std::string& text) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << command;
  };
  expect("classify colors.prototxt", "no image is given");
  expect("classify colors.prototxt blue.png --camera=0", "several sources of images");
  expect("classify colors.prototxt blue.png --mean_values=1,x", "--mean_values is '1,x'");
  expect("classify colors.prototxt blue.png --mean_values=1,2", "2 mean_value entries");
  expect("classify colors.prototxt blue.png --short_side=3", "less than the net's input of 4x6");
  expect("classify colors.prototxt blue.png --top=0", "-top is 0");
  expect("classify colors.prototxt blue.png --output=data",
         "which is not an output of the net; it has color");
  expect("detect detector.prototxt blue.png --threshold=nan", "it must be a number");
  expect("classify colors.prototxt blue.png --data=colors.prototxt", "has a transform_param");
  expect("detect colors.prototxt blue.png", "a detector's is 1x1xRx7");
  expect("segment colors.prototxt blue.png", "caffe classify tells its classes");
  expect("segment detector.prototxt blue.png", "one for segmentation is N x C x H x W");
  expect("classify pixels.prototxt blue.png", "caffe segment tells the class of each");
}

TEST_F(AskNetTest, DetectPrintsBoxesInPixelsOfTheImage) {
  Write("map.prototxt",
        "item { name: 'none' label: 0 display_name: 'background' }\n"
        "item { name: 'n1' label: 1 display_name: 'thing' }\n");
  const Outcome outcome = Run("detect detector.prototxt red.png blue.png --labels=map.prototxt");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("red.png thing 0.875 16 8 48 24\n"
                                        "blue.png thing 0.875 16 8 48 24\n"));
  EXPECT_THAT(Run("detect detector.prototxt red.png --threshold=0.9").output,
              HasSubstr("red.png: nothing has a score of 0.9 or more"));
  EXPECT_THAT(Run("detect detector.prototxt red.png --json").output,
              AllOf(HasSubstr("\"xmin\": 16"), HasSubstr("\"class\": 1")));
}

TEST_F(AskNetTest, DetectDrawsBoxesOnCopies) {
  const Outcome outcome = Run("detect detector.prototxt red.png --draw=found/here");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  const cv::Mat before = cv::imread(folder_.path("red.png"));
  const cv::Mat after = cv::imread(folder_.path("found/here/red.png"));
  ASSERT_EQ(after.size(), before.size());
  EXPECT_NE(after.at<cv::Vec3b>(20, 48), before.at<cv::Vec3b>(20, 48));  // the right edge
  EXPECT_EQ(after.at<cv::Vec3b>(2, 2), before.at<cv::Vec3b>(2, 2));
  // Images with the same name do not overwrite each other.
  EXPECT_EQ(Run("detect detector.prototxt red.png ./red.png --draw=found").status, 0);
  EXPECT_FALSE(cv::imread(folder_.path("found/red_1.png")).empty());
  Paint("red_1.png", {30, 60, 240});
  Paint("red.bmp", {30, 60, 240});
  EXPECT_EQ(Run("detect detector.prototxt red.png red_1.png red.bmp --draw=more").status, 0);
  for (const char* name : {"more/red.png", "more/red_1.png", "more/red_2.png"}) {
    EXPECT_FALSE(cv::imread(folder_.path(name)).empty()) << name;
  }
}

// The images themselves, and true masks, are files that somebody else has written.
TEST_F(AskNetTest, OnlyOwnFilesAreReplaced) {
  const auto content = [&](const std::string& name) {
    std::ostringstream bytes;
    bytes << std::ifstream(folder_.path(name), std::ios::binary).rdbuf();
    return bytes.str();
  };
  const std::string red = content("red.png");
  for (const char* command :
       {"detect detector.prototxt red.png --draw=.", "segment pixels.prototxt red.png --draw=.",
        "segment pixels.prototxt red.png --masks=.", "compile pixels.prototxt --output=red.png"}) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.output, HasSubstr("red.png: already exists, and this command has not"))
        << command;
    EXPECT_EQ(content("red.png"), red) << command;
  }
  for (const char* command : {"detect detector.prototxt red.png --draw=copies",
                              "segment pixels.prototxt red.png --masks=masks"}) {
    EXPECT_EQ(Run(command).status, 0) << command;
    EXPECT_EQ(Run(command).status, 0) << command << " again";
  }
}

TEST_F(AskNetTest, SegmentPrintsSharesAndWritesMasks) {
  cv::Mat halves(32, 64, CV_8UC3, cv::Scalar(200, 10, 20));
  halves(cv::Rect(32, 0, 32, 32)).setTo(cv::Scalar(30, 60, 240));
  cv::imwrite(folder_.path("halves.png"), halves);
  const Outcome outcome =
      Run("segment pixels.prototxt halves.png blue.png --batch=2 --labels=colors.txt --masks=masks "
          "--draw=drawn");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("halves.png blue 0.5000\nhalves.png red 0.5000\n"
                                        "blue.png blue 1.0000\n"));
  const cv::Mat mask = cv::imread(folder_.path("masks/halves.png"), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(mask.size(), halves.size());
  ASSERT_EQ(mask.type(), CV_8UC1);
  for (const int row : {0, 15, 31}) {
    for (const int column : {0, 20, 31}) EXPECT_EQ(mask.at<uint8_t>(row, column), 0);
    for (const int column : {32, 50, 63}) EXPECT_EQ(mask.at<uint8_t>(row, column), 2);
  }
  const cv::Mat drawn = cv::imread(folder_.path("drawn/halves.png"));
  EXPECT_EQ(drawn.at<cv::Vec3b>(8, 8), halves.at<cv::Vec3b>(8, 8));  // class 0
  EXPECT_NE(drawn.at<cv::Vec3b>(8, 40), halves.at<cv::Vec3b>(8, 40));
  EXPECT_THAT(Run("segment pixels.prototxt halves.png --masks=more --json").output,
              AllOf(HasSubstr("\"mask\": \"more/halves.png\""), HasSubstr("\"pixels\": 1024")));
}

// Class 255 would be the mark of pixels that the net does not see.
TEST_F(AskNetTest, SegmentTakes255Classes) {
  const auto run = [&](int classes) {
    Write("many.prototxt", StrCat(R"(
      layer { name: "data" type: "Input" top: "data"
              input_param { shape { dim: 1 dim: 3 dim: 4 dim: 6 } } }
      layer { name: "scores" type: "DummyData" top: "scores"
              dummy_data_param { shape { dim: 1 dim: )",
                                  classes, R"( dim: 4 dim: 6 } } }
      layer { name: "drop" type: "Silence" bottom: "data" })"));
    return Run("segment many.prototxt red.png");
  };
  EXPECT_THAT(run(255).output, HasSubstr("red.png 0 1.0000"));
  EXPECT_THAT(run(256).output, HasSubstr("with scores of 2 to 255 classes"));
}

// The net sees 48 of 64 columns.
TEST_F(AskNetTest, WhatTheNetDoesNotSeeHasNoClass) {
  ASSERT_EQ(Run("segment pixels.prototxt red.png --short_side=4 --masks=masks").status, 0);
  const cv::Mat mask = cv::imread(folder_.path("masks/red.png"), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(mask.size(), cv::Size(64, 32));
  for (int column = 0; column < 64; ++column) {
    EXPECT_EQ(mask.at<uint8_t>(9, column), column < 8 || column >= 56 ? 255 : 2) << column;
  }
}

}  // namespace
}  // namespace caffe
