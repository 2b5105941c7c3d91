#include "caffe/io/image_sizes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

void ExpectBox(const ImageBox& box, double xmin, double ymin, double xmax, double ymax) {
  EXPECT_DOUBLE_EQ(box.xmin, xmin);
  EXPECT_DOUBLE_EQ(box.ymin, ymin);
  EXPECT_DOUBLE_EQ(box.xmax, xmax);
  EXPECT_DOUBLE_EQ(box.ymax, ymax);
}

TEST(ImageSizesTest, ReadsNamesHeightsAndWidths) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "sizes", "a 100 200\n\nb 5 6\n");
  const std::vector<NamedImageSize> sizes = ReadImageSizes(folder / "sizes");
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[1].name, "b");
  EXPECT_EQ(sizes[1].height, 5);
  EXPECT_EQ(sizes[1].width, 6);
}

TEST(ImageSizesTest, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& content, const std::string& text) {
    WriteFileAtomically(folder / "sizes", content);
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { ReadImageSizes(folder / "sizes"); }),
                HasSubstr(text));
  };
  refuses("a 1 1\nb 0 5\n", "sizes:2: 'b 0 5' is not an image's name, height and width");
  refuses("\n", "names no image");
  EXPECT_THROW(ReadImageSizes(folder / "nowhere"), IoError);
}

TEST(ImageSizesTest, TakesBackWhatTheResizeMadeOfTheImage) {
  const NamedImageSize size{"a", 100, 200};
  ResizeParameter resize;
  ExpectBox(InPixels({0.25, 0.5, 0.75, 1.5}, size, resize), 50, 50, 150, 100);
  resize.set_height(300), resize.set_width(300);
  resize.set_resize_mode(ResizeParameter::FIT_LARGE_SIZE_AND_PAD);
  ExpectBox(InPixels({0, 0.25, 1, 0.75}, size, resize), 0, 0, 200, 100);  // fills the middle half
  resize.set_resize_mode(ResizeParameter::FIT_SMALL_SIZE);
  ExpectBox(InPixels({0.25, 0.5, 0.75, 1}, size, resize), 50, 50, 150, 100);
  resize.set_height_scale(60), resize.set_width_scale(400);
  ExpectBox(InPixels({0.25, 0.5, 0.75, 1}, size, resize), 100, 30, 200, 60);
}

}  // namespace
}  // namespace caffe
