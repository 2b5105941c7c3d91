#include "caffe/data/transformers/detectnet_transformer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>

#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/error_text.hpp"

namespace caffe::data {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

constexpr char kNothing[] =
    "scale_prob: 0 flip_prob: 0 rotation_prob: 0 hue_rotation_prob: 0 desaturation_prob: 0 "
    "crop_prob: 0 ";

// 16 x 8 pixels and cells of 4.
class DetectNetTransformerTest : public ::testing::Test {
 protected:
  void Make(const std::string& grid, const std::string& augmentation,
            const std::vector<float>& means = {}) {
    DetectNetGroundTruthParameter grid_param, changed_grid;
    ParseTextProto("stride: 4 image_size_x: 16 image_size_y: 8", "grid", &grid_param);
    ParseTextProto(grid, "grid", &changed_grid);
    grid_param.MergeFrom(changed_grid);
    DetectNetAugmentationParameter augmentation_param, changed_augmentation;
    ParseTextProto(kNothing, "augmentation", &augmentation_param);
    ParseTextProto(augmentation, "augmentation", &changed_augmentation);
    augmentation_param.MergeFrom(changed_augmentation);
    transformer_.emplace(grid_param, augmentation_param, means);
  }

  // Boxes are x, y, width, height, class.
  void Run(const std::vector<std::array<float, 5>>& boxes, uint64_t record = 0) {
    std::vector<float> labels(16 * (boxes.size() + 1));
    labels[0] = static_cast<float>(boxes.size()), labels[1] = 16;
    for (size_t i = 0; i < boxes.size(); ++i) {
      std::copy_n(boxes[i].begin(), 4, &labels[16 * (i + 1)]);
      labels[16 * (i + 1) + 5] = boxes[i][4];
    }
    std::vector<float> pixels(3 * rows_ * columns_);
    for (int i = 0; i < static_cast<int>(pixels.size()); ++i) pixels[i] = Pixel(i);
    image_.assign(3 * 8 * 16, -1);
    grid_.assign(transformer_->grid_channels() * 2 * 4, -1);
    const RandomStream stream(1, 2);
    transformer_->Transform(pixels.data(), rows_, columns_, labels.data(),
                            static_cast<int>(boxes.size()) + 1, &stream, record, image_.data(),
                            grid_.data());
  }

  static float Pixel(int i) { return static_cast<float>(i % 251); }
  float Cell(int plane, int y, int x) const { return grid_[(plane * 2 + y) * 4 + x]; }

  int rows_ = 8, columns_ = 16;
  std::optional<DetectNetTransformer> transformer_;
  std::vector<float> image_, grid_;
};

TEST_F(DetectNetTransformerTest, CoversTheMiddleOfABox) {
  Make("obj_norm: true", "");
  Run({{4, 0, 8, 8, 1}});
  ASSERT_EQ(transformer_->grid_channels(), 9);
  // Half of 8 x 8 around (8, 4) is x from 6 to 10 and y from 2 to 6.
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 4; ++x) {
      const bool is_covered = x == 1 || x == 2;
      EXPECT_EQ(Cell(0, y, x), is_covered ? 1 : 0) << y << ", " << x;
      EXPECT_EQ(Cell(8, y, x), is_covered ? 1 : 0) << y << ", " << x;
    }
  }
  EXPECT_EQ(Cell(1, 1, 2), 4 - 8);
  EXPECT_EQ(Cell(2, 1, 2), 0 - 4);
  EXPECT_EQ(Cell(3, 1, 2), 12 - 8);
  EXPECT_EQ(Cell(4, 1, 2), 8 - 4);
  EXPECT_EQ(Cell(5, 1, 2), 0.125f);
  EXPECT_EQ(Cell(6, 1, 2), 0.125f);
  EXPECT_EQ(Cell(7, 1, 2), 0.25f);
  for (int i = 0; i < static_cast<int>(image_.size()); ++i) EXPECT_EQ(image_[i], Pixel(i)) << i;
}

TEST_F(DetectNetTransformerTest, BoundsTheCover) {
  Make("max_cvg_len: 2", "");
  Run({{0, 0, 16, 8, 1}});  // x from 7 to 9, y from 3 to 5
  EXPECT_EQ(Cell(0, 0, 0) + Cell(0, 0, 3), 0);
  EXPECT_EQ(Cell(0, 0, 1) + Cell(0, 1, 2), 2);
  Make("gridbox_type: GRIDBOX_MIN min_cvg_len: 16", "");
  Run({{7, 3, 2, 2, 1}});
  EXPECT_EQ(Cell(0, 0, 0) + Cell(0, 1, 3), 2);
}

TEST_F(DetectNetTransformerTest, PutsTheSmallestBoxOfKnownClassesIntoACell) {
  Make("scale_cvg: 1 object_class { src: 3 dst: 1 } object_class { src: 7 dst: 0 }", "");
  Run({{0, 0, 4, 4, 3}, {0, 0, 16, 8, 7}, {8, 4, 4, 4, 5}});
  ASSERT_EQ(transformer_->grid_channels(), 10);
  EXPECT_EQ(Cell(8, 0, 0), 0);
  EXPECT_EQ(Cell(9, 0, 0), 1);
  EXPECT_EQ(Cell(8, 0, 1), 1);
  EXPECT_EQ(Cell(8, 1, 2), 1);
  EXPECT_EQ(Cell(3, 0, 0), 4);
}

TEST_F(DetectNetTransformerTest, CropsBoxesThatLeaveTheImage) {
  Make("scale_cvg: 1", "");
  Run({{-4, 0, 8, 4, 1}, {40, 0, 8, 8, 1}});
  EXPECT_EQ(Cell(1, 0, 0), 0);
  EXPECT_EQ(Cell(5, 0, 0), 0.25f);
  EXPECT_EQ(Cell(0, 0, 1), 0);
  Make("scale_cvg: 1 crop_bboxes: false", "");
  Run({{-4, 0, 8, 4, 1}});
  EXPECT_EQ(Cell(1, 0, 0), -4);
  EXPECT_EQ(Cell(5, 0, 0), 0.125f);
}

TEST_F(DetectNetTransformerTest, FlipsImageAndBoxes) {
  Make("scale_cvg: 1", "flip_prob: 1", {10});
  Run({{0, 0, 4, 8, 1}});
  EXPECT_EQ(image_[0], Pixel(15) - 10);
  EXPECT_EQ(image_[16 + 15], Pixel(16) - 10);
  EXPECT_EQ(Cell(0, 0, 0), 0);
  EXPECT_EQ(Cell(0, 0, 3), 1);
  EXPECT_EQ(Cell(1, 1, 3), 0);
}

TEST_F(DetectNetTransformerTest, ScalesToTheSize) {
  rows_ = 4, columns_ = 8;
  Make("scale_cvg: 1", "");
  Run({{0, 0, 4, 2, 1}});
  EXPECT_EQ(Cell(0, 0, 0) + Cell(0, 0, 1), 2);
  EXPECT_EQ(Cell(0, 1, 0) + Cell(0, 0, 2), 0);
  EXPECT_EQ(Cell(5, 0, 0), 0.125f);
}

TEST_F(DetectNetTransformerTest, MovesTheWindowByAtMostTheShift) {
  Make("scale_cvg: 1", "crop_prob: 1 shift_x: 3");
  std::set<int> shifts;
  for (uint64_t record = 0; record < 100; ++record) {
    Run({{4, 0, 8, 8, 1}}, record);
    const int left = static_cast<int>(Cell(1, 0, 2)) + 8;  // cell 2 begins at pixel 8
    shifts.insert(4 - left);
    for (int x = 0; x < 16; ++x) {
      const int from = x + 4 - left;
      EXPECT_EQ(image_[x], from >= 0 && from < 16 ? Pixel(from) : 0) << x;
    }
  }
  EXPECT_EQ(shifts.size(), 7u);
}

TEST_F(DetectNetTransformerTest, TurnsColoursAndBoxesWithinTheirBounds) {
  Make("scale_cvg: 1",
       "rotation_prob: 1 max_rotate_degree: 5 hue_rotation_prob: 1 "
       "desaturation_prob: 1 scale_prob: 1 crop_prob: 1");
  for (uint64_t record = 0; record < 100; ++record) {
    Run({{4, 2, 8, 4, 1}}, record);
    for (const float value : image_) EXPECT_TRUE(value > -80 && value < 330) << value;  // cubic
  }
}

TEST_F(DetectNetTransformerTest, RefusesWhatCannotBe) {
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Make("stride: 5", ""); }),
              HasSubstr("16 x 8 is not a whole number of cells of 5"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Make("", "scale_min: 2"); }),
              HasSubstr("scale_min is 2 and scale_max 1"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] {
                Make("", "", {1, 2});
              }),
              HasSubstr("2 mean_value entries"));
  Make("", "");
  std::vector<float> pixels(3 * 8 * 16), labels(32);
  labels[0] = 2, labels[1] = 16;
  image_.resize(3 * 8 * 16), grid_.resize(9 * 2 * 4);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] {
                transformer_->Transform(pixels.data(), 8, 16, labels.data(), 2, nullptr, 0,
                                        image_.data(), grid_.data());
              }),
              HasSubstr("2 boxes of 16 numbers each; there are 1 rows"));
}

}  // namespace
}  // namespace caffe::data
