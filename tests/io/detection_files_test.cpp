#include "caffe/io/detection_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

class DetectionFilesTest : public ::testing::Test {
 protected:
  DetectionFilesTest() {
    param_.set_output_directory(folder_.path());
    param_.set_output_name_prefix("found_");
    param_.set_label_map_file(folder_ / "labels.prototxt");
    param_.set_name_size_file(folder_ / "sizes.txt");
    Write("labels.prototxt",
          "item { name: 'none_of_the_above' label: 0 } item { name: '11' label: 1 } "
          "item { name: '12' label: 2 }");
    Write("sizes.txt", "7 100 200\n8 50 50\n");
  }

  void Write(const std::string& name, const std::string& text) {
    WriteFileAtomically(folder_ / name, text);
  }
  std::string Read(const std::string& name) { return ReadFile(folder_ / name); }
  bool Has(const std::string& name) { return std::filesystem::exists(folder_ / name); }

  TemporaryFolder folder_;
  SaveOutputParameter param_;
};

TEST_F(DetectionFilesTest, WritesVoc) {
  param_.set_output_format("VOC");
  DetectionFiles files(param_, 0);
  files.AddImage({{1, 0.5, {0.25, 0.5, 0.75, 1.5}}, {2, 0.25, {0, 0, 1, 1}}});
  EXPECT_FALSE(Has("found_11.txt"));  // not before all images are there
  files.AddImage({{1, 0.75, {-1, 0, 0.5, 0.5}}});
  EXPECT_EQ(Read("found_11.txt"), "7 0.5 50 50 150 100\n8 0.75 0 0 25 25\n");
  EXPECT_EQ(Read("found_12.txt"), "7 0.25 0 0 200 100\n");
  files.AddImage({});
  files.AddImage({});
  EXPECT_EQ(Read("found_11.txt"), "");
  EXPECT_FALSE(Has("found_none_of_the_above.txt"));
}

// A class named "../x" once left the folder.
TEST_F(DetectionFilesTest, RefusesClassesThatAreNoFileNames) {
  param_.set_output_format("VOC");
  for (const char* name : {"../outside", "a/b", "/absolute", "line\\nbreak"}) {
    Write("labels.prototxt", std::string("item { name: '") + name + "' label: 1 }");
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { DetectionFiles(param_, 0); }),
                HasSubstr("give a name without slashes"))
        << name;
  }
}

TEST_F(DetectionFilesTest, WritesCoco) {
  param_.set_output_format("COCO");
  DetectionFiles files(param_, 0);
  files.AddImage({{1, 0.5, {0.25, 0.5, 0.75, 1}}});
  files.AddImage({{2, 0.25, {0, 0, 1, 1}}});
  EXPECT_EQ(
      Read("found_.json"),
      "[\n{\"image_id\": 7, \"category_id\": 11, \"bbox\": [50, 50, 100, 50], \"score\": 0.5},\n"
      "{\"image_id\": 8, \"category_id\": 12, \"bbox\": [0, 0, 50, 50], \"score\": 0.25}\n]\n");
  files.AddImage({});
  files.AddImage({});
  EXPECT_EQ(Read("found_.json"), "[]\n");
}

// Written by number, because the classes have no names in the label map.
TEST_F(DetectionFilesTest, WritesIlsvrcOfTheFirstImages) {
  Write("labels.prototxt", "item { name: 'n02672831' label: 1 } item { name: 'n2' label: 2 }");
  param_.set_output_format("ILSVRC");
  param_.set_num_test_image(1);
  DetectionFiles files(param_, 0);
  files.AddImage({{2, 0.5, {0.25, 0.5, 0.75, 1}}});
  EXPECT_EQ(Read("found_.txt"), "7 2 0.5 50 50 150 100\n");
}

TEST_F(DetectionFilesTest, TakesBackPadding) {
  param_.set_output_format("VOC");
  param_.set_num_test_image(1);
  ResizeParameter& resize = *param_.mutable_resize_param();
  resize.set_resize_mode(ResizeParameter::FIT_LARGE_SIZE_AND_PAD);
  resize.set_height(300), resize.set_width(300);
  DetectionFiles files(param_, 0);
  files.AddImage({{1, 0.5, {0, 0.25, 1, 0.75}}});  // 200 x 100 fill the middle half
  EXPECT_EQ(Read("found_11.txt"), "7 0.5 0 0 200 100\n");
}

TEST_F(DetectionFilesTest, SaysWhatIsWrong) {
  const auto refuses = [&](const std::string& text) {
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { DetectionFiles files(param_, 0); }),
                HasSubstr(text));
  };
  refuses("output_format is ''; give VOC, COCO or ILSVRC");
  param_.set_output_format("COCO");
  param_.set_num_test_image(3);
  refuses("num_test_image is 3");
  Write("sizes.txt", "7 100 200\nhouse 50 50\n");
  refuses("'house' is none");
  Write("sizes.txt", "7 100 200\n8 50\n");
  refuses("sizes.txt:2: '8 50' is not an image's name, height and width");
  param_.set_output_directory(folder_ / "sizes.txt");
  refuses("is not a folder");
}

TEST_F(DetectionFilesTest, MakesTheFolder) {
  param_.set_output_format("VOC");
  param_.set_output_directory(folder_ / "results/Main");
  DetectionFiles files(param_, 0);
  EXPECT_TRUE(Has("results/Main"));
}

TEST_F(DetectionFilesTest, WritesNumbersAsJsonHasThem) {
  Write("labels.prototxt", "item { name: '07' label: 1 }");
  Write("sizes.txt", "000139 10 10\n");
  param_.set_output_format("COCO");
  DetectionFiles files(param_, 0);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] {
                files.AddImage({{1, INFINITY, {0, 0, 1, 1}}});
              }),
              HasSubstr("in image 000139 has score inf"));
  files.AddImage({{1, 0.5, {0, 0, 1, 1}}});
  EXPECT_THAT(Read("found_.json"), HasSubstr("{\"image_id\": 139, \"category_id\": 7,"));
}

TEST_F(DetectionFilesTest, RefusesAnUnknownClass) {
  param_.set_output_format("VOC");
  DetectionFiles files(param_, 0);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] {
                files.AddImage({{3, 0.5, {0, 0, 1, 1}}});
              }),
              HasSubstr("a detection has class 3"));
}

}  // namespace
}  // namespace caffe
