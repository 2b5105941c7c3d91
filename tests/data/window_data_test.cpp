#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/data/batches.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

class WindowDataTest : public ::testing::Test {
 protected:
  // An image of 20x30 whose pixel (row, column) is 100 + 4 * column in every channel.
  WindowDataTest() {
    Image image{{3, 20, 30}, {}};
    for (int row = 0; row < 20; ++row) {
      for (int column = 0; column < 30; ++column) {
        image.pixels.insert(image.pixels.end(), 3, static_cast<uint8_t>(100 + 4 * column));
      }
    }
    std::ofstream(folder_.path("a.png")) << EncodeImage(image, "png");
    Write("# 0\na.png\n3\n20\n30\n3\n2 0.9 10 4 17 11\n1 0.1 0 0 7 7\n3 0.5 24 12 31 19\n");
  }

  void Write(const std::string& text) const { std::ofstream(folder_.path("windows")) << text; }

  WindowOptions Options(const std::string& windows, const std::string& transform) const {
    WindowOptions options;
    options.train = true;
    options.layer = "l";
    ParseTextProto(windows, "test", &options.windows);
    options.windows.set_source(folder_.path("windows"));
    options.windows.set_root_folder(folder_.path(""));
    ParseTextProto(transform, "test", &options.transform);
    return options;
  }

  const caffe::testing::TemporaryFolder folder_;
};

TEST_F(WindowDataTest, BackgroundsComeFirst) {
  for (const char* cache : {"", " cache_images: true"}) {
    WindowBatches source(
        Options(StrCat("batch_size: 4 fg_fraction: 0.5 fg_threshold: 0.6", cache), "crop_size: 8"));
    EXPECT_EQ(source.data_shape(), (Shape{4, 3, 8, 8}));
    for (int i = 0; i < 3; ++i) {
      const Batch& batch = source.Next();
      EXPECT_EQ(std::vector<float>(batch.labels, batch.labels + 4),
                (std::vector<float>{0, 0, 2, 2}));
      // Windows of the size of the crop are taken unchanged.
      const float* image = batch.floats() + 2 * 3 * 64;
      EXPECT_EQ(image[0], 140);
      EXPECT_EQ(image[7], 168);
    }
  }
}

TEST_F(WindowDataTest, MirrorsAndSubtracts) {
  WindowBatches source(Options("batch_size: 1 fg_fraction: 1 fg_threshold: 0.6",
                               "crop_size: 8 mirror: true mean_value: 100 scale: 0.5"));
  std::set<float> corners;
  for (int i = 0; i < 50; ++i) corners.insert(source.Next().floats()[0]);
  EXPECT_EQ(corners, (std::set<float>{20, 34}));
}

TEST_F(WindowDataTest, OutsideTheImageIsZero) {
  Write("# 0\na.png\n3\n20\n30\n1\n3 0.9 24 12 31 19\n");
  WindowBatches source(Options("batch_size: 1 fg_fraction: 1", "crop_size: 8 mean_value: 1"));
  const Batch& batch = source.Next();
  EXPECT_EQ(batch.floats()[5], 100 + 4 * 29 - 1);
  EXPECT_EQ(batch.floats()[6], 0);
  EXPECT_EQ(batch.floats()[7], 0);
}

TEST_F(WindowDataTest, ContextGrowsTheWindow) {
  // 2 of 8 pixels of context: the window takes the middle 4, so 4 of 8 pixels are its own.
  Write("# 0\na.png\n3\n20\n30\n1\n3 0.9 10 8 13 11\n");
  WindowBatches source(Options("batch_size: 1 fg_fraction: 1 context_pad: 2", "crop_size: 8"));
  const Batch& batch = source.Next();
  // Around the centre 12: columns 8 to 16 of the image, 9 columns for 8 pixels.
  EXPECT_NEAR(batch.floats()[0], 100 + 4 * 8, 2);
  EXPECT_NEAR(batch.floats()[7], 100 + 4 * 16, 2);
  WindowBatches wide(Options("batch_size: 1 fg_fraction: 1", "crop_size: 4"));
  EXPECT_EQ(wide.Next().floats()[0], 140);
}

TEST_F(WindowDataTest, SquareTakesTheLargerSide) {
  Write("# 0\na.png\n3\n20\n30\n1\n3 0.9 10 9 13 10\n");
  WindowBatches source(Options("batch_size: 1 fg_fraction: 1 crop_mode: 'square'", "crop_size: 4"));
  EXPECT_NEAR(source.Next().floats()[0], 140, 1);
}

TEST_F(WindowDataTest, NamesWhatIsWrong) {
  const auto expect_error = [&](const std::string& windows, const std::string& transform,
                                const char* text) {
    EXPECT_THAT(ErrorText<Error>([&] { WindowBatches(Options(windows, transform)).Next(); }),
                HasSubstr(text));
  };
  const std::string batch = "batch_size: 2 ", crop = "crop_size: 8";
  expect_error(batch, "", "crop_size } is missing");
  expect_error(batch + "crop_mode: 'round'", crop, "crop_mode is 'round'; use warp or square");
  expect_error(batch + "context_pad: 4", crop, "context_pad is 4");
  expect_error(batch + "bg_threshold: 0.05", crop, "no window has an overlap below 0.05");
  expect_error(batch + "fg_fraction: 0.5 fg_threshold: 0.95", crop, "0.95 (fg_threshold) or more");
  Write("# 0\na.png\n3\n20\n30\n2\n2 0.9 10 4 17 11\n");
  expect_error(batch, crop, "ends where a window should follow");
  Write("# 0\na.png\n3\n20\n30\n1\n2 0.9 10 4 17\n");
  expect_error(batch, crop, "windows:7: expected 'LABEL OVERLAP X1 Y1 X2 Y2', got '2 0.9 10 4 17'");
  Write("# 0\na.png\n3\n20\n30\n1\n2 0.9 -2000000000 4 2000000000 11\n");
  expect_error(batch, crop, "windows:7: a window at -2000000000 4 2000000000 11; coordinates");
  Write("# 0\na.png\n3\n20\n30\n1\n0 0.9 10 4 17 11\n");
  expect_error(batch, crop, "foreground needs a label from 1 on");
  Write("# 0\nb.png\n3\n20\n30\n1\n1 0.9 10 4 17 11\n");
  expect_error("batch_size: 1 fg_fraction: 1", crop, "b.png");
}

}  // namespace
}  // namespace caffe::data
