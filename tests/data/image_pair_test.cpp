#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "caffe/data/batch_source.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/sources/image_pair_source.hpp"
#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::ErrorText;
using ::testing::HasSubstr;

class ImagePairTest : public ::testing::Test {
 protected:
  // Grey images with the given numbers, row by row.
  void AddPair(const std::string& name, int height, int width, const std::vector<uint8_t>& image,
               const std::vector<uint8_t>& labels) {
    Write(name + ".png", height, width, image);
    Write(name + "_labels.png", static_cast<int>(labels.size()) / width, width, labels);
    AddLine(name + ".png " + name + "_labels.png");
  }
  void AddLine(const std::string& line) { std::ofstream(list_, std::ios::app) << line << "\n"; }

  DenseImageDataParameter Options(int batch_size) const {
    DenseImageDataParameter options;
    options.set_source(list_);
    options.set_root_folder(folder_.path(""));
    options.set_batch_size(batch_size);
    options.set_is_color(false);
    return options;
  }
  static BatchSourceOptions Training() {
    BatchSourceOptions options;
    options.layer = "l";
    options.train = true;
    return options;
  }

 private:
  void Write(const std::string& name, int height, int width, const std::vector<uint8_t>& pixels) {
    std::ofstream(folder_.path(name)) << EncodeImage({{1, height, width}, pixels}, "png");
  }

 protected:
  const caffe::testing::TemporaryFolder folder_;
  const std::string list_ = folder_.path("list.txt");
};

std::vector<float> Labels(const Batch& batch) {
  return {batch.labels, batch.labels + batch.label_shape.count()};
}

TEST_F(ImagePairTest, LabelsAreImages) {
  AddPair("a", 2, 3, {1, 2, 3, 4, 5, 6}, {0, 1, 2, 11, 255, 7});
  AddPair("b", 2, 3, {7, 8, 9, 10, 11, 12}, {5, 5, 5, 6, 6, 6});
  BatchSourceOptions options = Training();
  options.transform.add_mean_value(1);
  options.transform.set_scale(2);
  BatchSource source(MakeImagePairSource(Options(2), options), options);
  EXPECT_EQ(source.label_shape(), (Shape{2, 1, 2, 3}));
  const Batch& batch = source.Next();
  EXPECT_EQ(batch.data_shape, (Shape{2, 1, 2, 3}));
  EXPECT_EQ(batch.label_shape, (Shape{2, 1, 2, 3}));
  EXPECT_EQ(batch.floats()[1], 2);
  EXPECT_THAT(Labels(batch), ElementsAre(0, 1, 2, 11, 255, 7, 5, 5, 5, 6, 6, 6));
}

TEST_F(ImagePairTest, LabelsFollowCropAndMirror) {
  std::vector<uint8_t> numbers(12 * 10);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint8_t>(i);
  AddPair("a", 12, 10, numbers, numbers);
  DenseImageDataParameter images = Options(4);
  images.set_crop_size(5);
  images.set_mirror(true);
  BatchSource source(MakeImagePairSource(images, Training()), Training());
  bool moves = false, mirrors = false;
  for (int i = 0; i < 4; ++i) {
    const Batch& batch = source.Next();
    EXPECT_EQ(batch.label_shape, (Shape{4, 1, 5, 5}));
    EXPECT_THAT(Labels(batch), ElementsAreArray(batch.floats(), 4 * 25));
    moves = moves || batch.floats()[0] != batch.floats()[25];
    mirrors = mirrors || batch.floats()[1] < batch.floats()[0];
  }
  EXPECT_TRUE(moves && mirrors);
}

TEST_F(ImagePairTest, ResizesLabelsWithoutMixingThem) {
  AddPair("a", 2, 2, {0, 100, 200, 40}, {0, 255, 0, 255});
  AddPair("b", 1, 2, {0, 100}, {255, 0});
  DenseImageDataParameter images = Options(2);
  images.set_new_height(2);
  images.set_new_width(4);
  images.set_label_divide_by_255(true);
  BatchSource source(MakeImagePairSource(images, Training()), Training());
  EXPECT_THAT(Labels(source.Next()), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0));
}

TEST_F(ImagePairTest, SaysWhatIsWrong) {
  AddPair("a", 2, 2, {0, 1, 2, 3}, {0, 1, 2, 3});
  const auto refuses = [](const DenseImageDataParameter& images, const BatchSourceOptions& options,
                          const std::string& reason) {
    EXPECT_THAT(ErrorText<Error>(
                    [&] { BatchSource(MakeImagePairSource(images, options), options).Next(); }),
                HasSubstr(reason));
  };
  DenseImageDataParameter images = Options(1);
  images.set_new_height(3);
  refuses(images, Training(), "new_height is 3 and new_width 0");
  BatchSourceOptions options = Training();
  options.transform.set_crop_size(1);
  images = Options(1);
  images.set_crop_size(2);
  refuses(images, options, "dense_image_data_param.crop_size is 2 and transform_param.crop_size 1");
  options = Training();
  options.transform.mutable_resize_param()->set_height(4);
  options.transform.mutable_resize_param()->set_width(4);
  refuses(Options(1), options, "in ways that labels of pixels do not follow");
  AddPair("b", 1, 2, {0, 1}, {0, 1, 2, 3});
  AddLine("alone.png");
  refuses(Options(2), Training(), "list.txt:3: 'alone.png' has no second path");
}

ImageDataParameter AsImageData(const DenseImageDataParameter& pairs) {
  ImageDataParameter images;
  images.set_source(pairs.source());
  images.set_root_folder(pairs.root_folder());
  images.set_batch_size(pairs.batch_size());
  images.set_is_color(pairs.is_color());
  return images;
}

// As in DeepLab, padded pixels have the mean, which becomes 0, and ignore_label.
TEST_F(ImagePairTest, PadsImagesThatAreSmallerThanTheCrop) {
  AddPair("a", 1, 2, {5, 6}, {1, 2});
  AddPair("b", 4, 2, {1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  BatchSourceOptions options = Training();
  options.train = false;
  options.transform.set_crop_size(3);
  options.transform.add_mean_value(2.25f);
  BatchSource source(
      MakeImagePairSource(AsImageData(Options(2)), options, {.ignore_label = 9, .pads = true}),
      options);
  const Batch& batch = source.Next();
  EXPECT_EQ(batch.data_shape, (Shape{2, 1, 3, 3}));
  EXPECT_THAT(std::vector<float>(batch.floats(), batch.floats() + 18),
              ElementsAre(2.75f, 3.75f, 0, 0, 0, 0, 0, 0, 0,  //
                          -1.25f, -0.25f, 0, 0.75f, 1.75f, 0, 2.75f, 3.75f, 0));
  EXPECT_THAT(Labels(batch), ElementsAre(1, 2, 9, 9, 9, 9, 9, 9, 9, 0, 1, 9, 2, 3, 9, 4, 5, 9));
  EXPECT_THAT(std::vector<float>(batch.shown_sizes, batch.shown_sizes + 4),
              ElementsAre(1, 2, 3, 2));
}

TEST_F(ImagePairTest, LabelsMayBeOneNumberOrNone) {
  using Kind = ImagePairRules::Labels;
  AddPair("a", 1, 2, {5, 6}, {1, 2});
  std::ofstream(list_) << "a.png 4\n";
  BatchSource one(
      MakeImagePairSource(AsImageData(Options(1)), Training(), {.labels = Kind::kNumber}),
      Training());
  EXPECT_THAT(Labels(one.Next()), ElementsAre(4, 4));
  std::ofstream(list_) << "a.png\na.png none.png\n";
  BatchSource none(
      MakeImagePairSource(AsImageData(Options(2)), Training(), {.labels = Kind::kNone}),
      Training());
  EXPECT_THAT(Labels(none.Next()), ElementsAre(255, 255, 255, 255));
}

TEST_F(ImagePairTest, EdgesAre1From128Up) {
  AddPair("a", 1, 4, {0, 0, 0, 0}, {0, 127, 128, 255});
  BatchSource source(MakeImagePairSource(AsImageData(Options(1)), Training(), {.is_binary = true}),
                     Training());
  EXPECT_THAT(Labels(source.Next()), ElementsAre(0, 0, 1, 1));
}

TEST_F(ImagePairTest, LabelsAreAsManyAsPixels) {
  AddPair("b", 1, 2, {0, 1}, {0, 1, 2, 3});
  EXPECT_THAT(ErrorText<Error>([&] {
                BatchSource(MakeImagePairSource(Options(1), Training()), Training()).Next();
              }),
              HasSubstr("'b_labels.png' has 2x2 labels, but its image 1x2 pixels"));
}

}  // namespace
}  // namespace caffe::data
