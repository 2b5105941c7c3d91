// A region's properties follow from those of its members.
#include "caffe/ops/fused.hpp"

#include <gtest/gtest.h>

#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/read_again.hpp"
#include "caffe/ops/row_norm.hpp"
#include "tests/support/fused_regions.hpp"

namespace caffe {
namespace {

using ops::Fused;

const ops::ConvGeometry kPointwise = {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1};
const ops::ConvGeometry kWindow = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1};

TensorDesc Image(std::vector<int64_t> dims, DType dtype = DType::kFloat,
                 Layout layout = Layout::kChannelsLast) {
  return {Shape(std::move(dims)), dtype, layout};
}

// A 1x1 convolution of 2 x 4 x 5 x 6 to 8 channels, then one of 3x3 to 3.
Fused Pair() {
  return testing::PairOf({kPointwise}, {kWindow}, {2, 8, 5, 6});
}
std::vector<TensorDesc> PairInputs(DType dtype, Layout layout) {
  return {Image({2, 4, 5, 6}, dtype, layout), {{8, 4, 1, 1}, dtype}, {}, {{3, 8, 3, 3}, dtype}, {}};
}

TEST(FusedTest, FlopsAreThoseOfTheMembers) {
  const std::vector<TensorDesc> outputs = {Image({2, 3, 5, 6})};
  const double pixels = 2 * 5 * 6;
  EXPECT_EQ(Op(Pair()).Flops(PairInputs(DType::kFloat, Layout::kChannelsLast), outputs),
            2 * pixels * (4 * 8 + 8 * 9 * 3));
}

TEST(FusedTest, InnerTensorsHaveTheTypeAndLayoutOfTheRegion) {
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    for (const DType dtype : {DType::kDouble, DType::kFloat, DType::kBFloat16}) {
      const auto inner = Pair().InnerDescs(PairInputs(dtype, layout), {});
      ASSERT_EQ(inner.size(), 1u);
      EXPECT_EQ(inner[0].dtype, dtype);
      EXPECT_EQ(inner[0].layout, layout);
      EXPECT_EQ(inner[0].shape, Shape({2, 8, 5, 6}));
    }
  }
  Fused numbers = Pair();
  numbers.inner[0].dtype = DType::kInt8;
  numbers.inner[0].scale = 0.5F;
  const TensorDesc inner = numbers.InnerDescs(PairInputs(DType::kUInt8, Layout::kPlain), {})[0];
  EXPECT_EQ(inner.dtype, DType::kInt8);
  EXPECT_EQ(inner.scale, 0.5F);
}

TEST(FusedTest, LayoutRulesAreTheMembers) {
  const LayoutRule pair = Op(Pair()).layout_rule();
  EXPECT_TRUE(pair.prefers_channels_last);
  EXPECT_TRUE(pair.inputs.contains(0));
  for (const size_t i : {1, 2, 3, 4}) EXPECT_FALSE(pair.inputs.contains(i)) << i;
  EXPECT_TRUE(pair.outputs.contains(0));
  const LayoutRule into = Op(testing::IntoOf({kWindow}, 8, {2, 8, 5, 6})).layout_rule();
  EXPECT_TRUE(into.inputs.contains(3));
  const LayoutRule statistics = Op(testing::StatisticsOf({kWindow})).layout_rule();
  EXPECT_TRUE(statistics.outputs.contains(0));
  EXPECT_FALSE(statistics.outputs.contains(1));
}

// Rows end where a plain op needs the tensor that an op of any layout writes, so all is plain.
TEST(FusedTest, AMemberThatNeedsPlainTensorsDecides) {
  Fused region{
      .members = {{ops::EltwiseSum{}, {Fused::Input(0), Fused::Input(1)}, {Fused::Output(0)}},
                  {ops::RmsNorm{}, {Fused::Output(0)}, {Fused::Output(1)}}}};
  const LayoutRule rule = Op(region).layout_rule();
  for (const size_t i : {0, 1}) EXPECT_FALSE(rule.inputs.contains(i)) << i;
  for (const size_t i : {0, 1}) EXPECT_FALSE(rule.outputs.contains(i)) << i;
  EXPECT_FALSE(rule.prefers_channels_last);
  EXPECT_TRUE(Op(ops::EltwiseSum{}).layout_rule().outputs.contains(0));
}

// Output 0 may replace an input if that is not read afterwards.
TEST(FusedTest, RunsInPlaceWhereItsLastReaderDoes) {
  EXPECT_TRUE(Op(testing::ReluGradSum()).in_place());
  EXPECT_TRUE(Op(testing::BatchNormReluGrad(1e-5, {2, 8, 5, 6})).in_place());
  EXPECT_FALSE(Op(Pair()).in_place());
  Fused reads_again = testing::ReluGradSum();
  reads_again.members[1].inputs = {Fused::Input(0)};
  EXPECT_FALSE(Op(reads_again).in_place());
}

TEST(FusedTest, UpdatesAndRulesAreTheMembers) {
  const Op updating(testing::StatisticsOf({kWindow}, ops::UpdateRunningStatistics{}));
  for (const size_t i : {0, 1, 2}) EXPECT_FALSE(updating.updates().contains(i)) << i;
  for (const size_t i : {3, 4, 5}) EXPECT_TRUE(updating.updates().contains(i)) << i;
  EXPECT_EQ(updating.numeric_rule(), NumericRule::kMath);
  EXPECT_EQ(Op(testing::ReluGradSum()).numeric_rule(), NumericRule::kStorage);
  EXPECT_EQ(updating.Attributes(),
            "Conv[kernel 3x3, pad 1x1] ChannelStatistics UpdateRunningStatistics[fraction 0.999]");
}

// The gradient reads x and dy twice; the recomputed result is not in memory.
TEST(FusedTest, TensorsBetweenMembersAreNotRead) {
  const TensorDesc image = Image({2, 8, 5, 6}), numbers = {{8}};
  const TensorDesc* inputs[] = {&image, &numbers, &numbers, &image, &numbers, &numbers};
  const TensorDesc* outputs[] = {&image, &numbers, &numbers};
  const Op region(testing::BatchNormReluGrad(1e-5, image.shape));
  EXPECT_EQ(ops::BytesReadAgain(region, inputs, outputs), 2.0 * static_cast<double>(image.bytes()));
}

// A part of an input is in memory: the gradient reads it twice, as x, and nothing else of the
// input.
TEST(FusedTest, OnlyTheReadPartOfAnInputCounts) {
  const TensorDesc image = Image({2, 8, 5, 6}), whole = Image({2, 24, 5, 6}), numbers = {{8}};
  const TensorDesc* inputs[] = {&image, &numbers, &numbers, &whole, &numbers, &numbers};
  const TensorDesc* outputs[] = {&image, &numbers, &numbers};
  const Op region(testing::BatchNormReluGradOfPart(1e-5, 8, image.shape));
  EXPECT_EQ(ops::BytesReadAgain(region, inputs, outputs),
            3.0 * static_cast<double>(image.bytes()) - static_cast<double>(whole.bytes()));
}

TEST(FusedTest, KnowsItsMembersAndTheirOperands) {
  const Fused region = testing::BatchNormReluGrad(1e-5, {2, 8, 5, 6});
  EXPECT_TRUE(region.Is({"BatchNormInference", "BatchNormGrad"}));
  EXPECT_FALSE(region.Is({"BatchNormInference"}));
  EXPECT_EQ(region.InputOf(1, ops::BatchNormGrad::kDy), 3);
  EXPECT_EQ(region.InputOf(0, ops::BatchNormInference::kFactor), -1) << "absent";
  EXPECT_EQ(region.InputOf(1, ops::BatchNormGrad::kY), -1) << "a member's result";
}

}  // namespace
}  // namespace caffe
