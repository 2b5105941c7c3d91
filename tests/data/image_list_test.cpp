#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/error.hpp"
#include "tests/data/batches.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

class ImageListTest : public ::testing::Test {
 protected:
  // A grey image of one value, 8 pixels high and 6 wide.
  void AddImage(const std::string& name, uint8_t value, int label) {
    const Image image{{1, 8, 6}, std::vector<uint8_t>(48, value)};
    std::ofstream(folder_.path(name)) << EncodeImage(image, "png");
    AddLine(StrCat(name, " ", label));
  }
  void AddLine(const std::string& line) { std::ofstream(list_, std::ios::app) << line << "\n"; }

  ImageDataParameter Options(int batch_size) const {
    ImageDataParameter options;
    options.set_source(list_);
    options.set_root_folder(folder_.path(""));
    options.set_batch_size(batch_size);
    options.set_is_color(false);
    return options;
  }

  const caffe::testing::TemporaryFolder folder_;
  const std::string list_ = folder_.path("list.txt");
};

TEST_F(ImageListTest, PathsMayContainSpaces) {
  AddImage("a cat.png", 10, 3);
  AddImage("dog.png", 20, 5);
  ImageListBatches source(Options(3));
  const Batch& batch = source.Next();
  EXPECT_EQ(batch.data_shape, (Shape{3, 1, 8, 6}));
  EXPECT_EQ(std::vector<float>(batch.labels, batch.labels + 3), (std::vector<float>{3, 5, 3}));
  EXPECT_EQ(batch.floats()[0], 10);
  EXPECT_EQ(batch.floats()[48], 20);
}

// Editors on Windows put a byte order mark before the first line.
TEST_F(ImageListTest, AByteOrderMarkIsNoPartOfTheFirstPath) {
  std::ofstream(list_) << "\xef\xbb\xbf";
  AddImage("a.png", 10, 3);
  ImageListBatches source(Options(1));
  EXPECT_EQ(source.Next().labels[0], 3);
}

TEST_F(ImageListTest, ShortSideKeepsTheAspect) {
  AddImage("a.png", 10, 0);
  ImageDataParameter options = Options(1);
  options.set_short_side(12);
  ImageListBatches source(options);
  EXPECT_EQ(source.data_shape(), (Shape{1, 1, 16, 12}));
}

TEST_F(ImageListTest, SaysHowToGetImagesOfOneSize) {
  AddImage("a.png", 10, 0);
  std::ofstream(folder_.path("b.png"))
      << EncodeImage({{1, 4, 6}, std::vector<uint8_t>(24, 10)}, "png");
  AddLine("b.png 1");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ImageListBatches(Options(2)).Next(); }),
              AllOf(HasSubstr("an image of 1x4x6 (channels x height x width)"),
                    HasSubstr("set image_data_param { new_height: ... new_width: ... }")));
}

TEST_F(ImageListTest, NamesTheLineAndTheFile) {
  const auto expect_error = [&](const ImageDataParameter& options, auto matcher) {
    EXPECT_THAT(ErrorText<Error>([&] { ImageListBatches(options).Next(); }), matcher);
  };
  expect_error(Options(1), HasSubstr("list.txt: cannot open"));
  AddLine("missing.png 4");
  expect_error(Options(1), AllOf(HasSubstr("missing.png"), HasSubstr("cannot open")));
  AddLine("cat.png");
  expect_error(Options(1), AllOf(HasSubstr("list.txt:2"), HasSubstr("has no label")));
}

TEST_F(ImageListTest, SaysWhatAFileWithoutAnImageIs) {
  const auto expect_error = [&](const std::string& part) {
    EXPECT_THAT(ErrorText<IoError>([&] { ImageListBatches source(Options(1)); }), HasSubstr(part));
  };
  std::filesystem::create_directory(folder_.path("folder"));
  std::ofstream(list_) << "folder 0\n";
  expect_error("folder' is a directory");
  std::ofstream(folder_.path("empty.png"));
  std::ofstream(list_) << "empty.png 0\n";
  expect_error("it has no bytes");
}

TEST_F(ImageListTest, SaysWhichImageCannotBecomeThatLarge) {
  AddImage("a.png", 10, 0);
  ImageDataParameter options = Options(1);
  options.set_new_height(2000000000);
  options.set_new_width(2000000000);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ImageListBatches source(options); }),
              AllOf(HasSubstr("a.png"), HasSubstr("to 2000000000x2000000000")));
}

TEST_F(ImageListTest, SizeNeedsBothSides) {
  AddImage("a.png", 10, 0);
  ImageDataParameter options = Options(1);
  options.set_new_height(4);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ImageListBatches source(options); }),
              HasSubstr("new_width 0"));
}

}  // namespace
}  // namespace caffe::data
