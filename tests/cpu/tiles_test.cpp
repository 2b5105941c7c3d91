// Convolutions by products of tiles (AMX).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "caffe/core/instructions.hpp"
#include "caffe/core/threads_for_now.hpp"
#include "caffe/cpu/kernels/tile_products.hpp"
#include "caffe/ops/conv.hpp"
#include "tests/cpu/fault_of_kernel.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {
namespace {

struct TileCase {
  std::string name;
  std::vector<int64_t> x;
  int64_t outputs;
  std::vector<int64_t> kernel = {1, 1}, stride = {1, 1}, pad = {0, 0}, dilation = {1, 1};

  ops::ConvGeometry geometry() const { return {kernel, stride, pad, dilation, 1}; }
  Shape w() const { return {outputs, x[1], kernel[0], kernel[1]}; }
  Shape y() const {
    const ops::ConvGeometry g = geometry();
    return {x[0], outputs, g.OutputSize(0, x[2]), g.OutputSize(1, x[3])};
  }
};

const std::vector<TileCase> kTileCases = {
    {"one pixel", {1, 32, 1, 1}, 16},
    {"a line of 17 pixels, whose tiles overlap", {1, 64, 1, 17}, 33},
    {"49 pixels in four tiles", {1, 512, 7, 7}, 96},
    {"more pixels than a chunk", {3, 128, 29, 31}, 64},
    {"weights that do not stay in the cache", {2, 1024, 7, 7}, 1056},
    {"a stride", {2, 64, 15, 13}, 40, {1, 1}, {2, 2}},
    {"a stride along one axis", {2, 64, 15, 13}, 40, {1, 1}, {1, 3}},
    {"padded windows", {2, 64, 9, 23}, 64, {3, 3}, {1, 1}, {1, 1}},
    {"padding beyond the window", {1, 32, 3, 5}, 32, {2, 3}, {1, 1}, {1, 2}},
    {"windows inside of the image", {1, 32, 12, 40}, 48, {3, 5}},
    {"padded windows with a stride", {2, 32, 17, 33}, 70, {3, 3}, {2, 2}, {1, 1}},
    {"windows that skip pixels", {1, 32, 12, 14}, 32, {2, 2}, {3, 3}},
    {"dilation", {1, 32, 20, 19}, 32, {3, 3}, {1, 1}, {2, 2}, {2, 2}},
    {"dilation down only", {1, 32, 20, 19}, 32, {3, 3}, {1, 1}, {2, 1}, {2, 1}},
    {"three channels", {2, 3, 31, 29}, 64, {7, 7}, {2, 2}, {3, 3}},
    {"one channel", {3, 1, 28, 28}, 20, {5, 5}},
    {"one channel and one pixel windows", {3, 1, 28, 28}, 20},
    {"slices of runs", {1, 160, 8, 37}, 32, {3, 3}, {1, 1}, {1, 1}},
    {"a slice of several runs", {1, 32, 30, 64}, 32, {5, 5}, {1, 1}, {2, 2}},
    {"several images in a chunk", {5, 256, 5, 5}, 480, {3, 3}, {1, 1}, {1, 1}},
    {"several chunks of an image", {1, 96, 60, 61}, 32, {3, 3}, {1, 1}, {1, 1}},
};

std::string FaultOf(const std::string& name, const TileCase& of, DType type, DType of_y) {
  OperandDesc x{{Shape(of.x), type, Layout::kChannelsLast}};
  OperandDesc w{{of.w(), type == DType::kBFloat16 ? type : DType::kFloat}};
  OperandDesc bias{{Shape{of.outputs}, DType::kFloat}};
  OperandDesc y{{of.y(), of_y, Layout::kChannelsLast}};
  if (type != DType::kBFloat16) x.scale = 0.1F, y.scale = 0.4F;
  return testing::FaultOfKernel(name, Op(ops::Conv{of.geometry()}), {x, w, bias}, {y});
}

std::string FaultOfGradient(const TileCase& of) {
  const OperandDesc x{{Shape(of.x), DType::kBFloat16, Layout::kChannelsLast}};
  const OperandDesc dy{{of.y(), DType::kBFloat16, Layout::kChannelsLast}};
  const OperandDesc dw{{of.w(), DType::kFloat}}, bias{{Shape{of.outputs}, DType::kFloat}};
  return testing::FaultOfKernel("conv-grad-weights-by-tiles",
                                Op(ops::ConvGradWeights{of.geometry()}), {x, dy}, {dw, bias});
}

const std::vector<TileCase> kGradientCases = {
    {"pixels of all images", {5, 512, 7, 7}, 528},
    {"parts of all images", {3, 272, 29, 31}, 1000},
    {"a stride", {2, 1024, 15, 13}, 272, {1, 1}, {2, 2}},
    {"a stride along one axis", {2, 256, 15, 13}, 1024, {1, 1}, {1, 3}},
    {"several images in a part", {5, 192, 7, 7}, 176, {3, 3}, {1, 1}, {1, 1}},
    {"bands of an image", {2, 176, 40, 37}, 192, {3, 3}, {1, 1}, {1, 1}},
    {"windows inside of the image", {2, 130, 12, 20}, 150, {3, 5}},
    {"an even pitch and no odd distance", {2, 256, 9, 8}, 256, {3, 2}, {1, 1}, {0, 2}, {1, 2}},
    {"padding and dilation", {2, 200, 14, 11}, 210, {3, 3}, {1, 1}, {2, 2}, {2, 2}},
    {"a padded pixel", {2, 512, 5, 6}, 512, {1, 1}, {1, 1}, {1, 0}}};

class TilesTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!InstructionsOfThisProcessor().may_use_tiles) GTEST_SKIP() << "this processor has no AMX";
  }
  const ThreadsForNow threads_{GetParam()};
};

TEST_P(TilesTest, AreRightInBFloat16) {
  for (const TileCase& of : kTileCases) {
    EXPECT_EQ(FaultOf("conv-by-tiles", of, DType::kBFloat16, DType::kBFloat16), "") << of.name;
  }
}

TEST_P(TilesTest, AreRightInEightBits) {
  for (const TileCase& of : kTileCases) {
    for (const DType x : {DType::kUInt8, DType::kInt8}) {
      for (const DType y : {DType::kUInt8, DType::kInt8})
        EXPECT_EQ(FaultOf("conv-by-tiles-int8", of, x, y), "") << of.name << " " << Name(x);
    }
  }
}

TEST_P(TilesTest, GradientsOfWeightsAreRight) {
  for (const TileCase& of : kGradientCases) EXPECT_EQ(FaultOfGradient(of), "") << of.name;
}

INSTANTIATE_TEST_SUITE_P(Threads, TilesTest, ::testing::Values(1, 2, 5),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(TileCutTest, DividesPixelsAndUnitsEvenly) {
  const TileCut cut(49, 24);
  EXPECT_EQ(cut.tiles, 4);
  EXPECT_EQ(cut.rows, 13);
  EXPECT_EQ(cut.steps, 2);
  EXPECT_EQ(cut.units, 12);
  EXPECT_EQ(cut.FirstOf(3, 49), 36);
  EXPECT_FALSE(cut.is_wasteful());
  EXPECT_TRUE(TileCut(16, 37).is_wasteful());  // a prime number of units
}

}  // namespace
}  // namespace caffe::cpu
#endif
