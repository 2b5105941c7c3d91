// Layers whose outputs several ranks compute together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"

namespace caffe {
namespace {

constexpr char kLayer[] = R"(
  name: 'net'
  layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 4 dim: 6 } } }
  layer { name: 'below' type: 'InnerProduct' bottom: 'x' top: 'h'
    inner_product_param { num_output: 3 } }
  layer { name: 'fc' type: 'InnerProduct' bottom: 'h' top: 'y' parallel: SPLIT_OUTPUT
    inner_product_param { num_output: 5 } }
  layer { name: 'loss' type: 'Reduction' bottom: 'y' top: 'loss' loss_weight: 1 }
)";

// The steps of layer 'fc' on rank `rank` of `ranks`.
std::string StepsOf(int rank, int ranks, Phase phase = TRAIN) {
  NetParameter param;
  ParseTextProto(kLayer, "test", &param);
  param.mutable_state()->set_phase(phase);
  const Net net(param, {.keep_all = false,
                        .with_backward = phase == TRAIN,
                        .seed = 1,
                        .rank = rank,
                        .ranks = ranks,
                        .allocate = false});
  std::string text;
  const auto names = [](const auto& operands) {
    std::string list;
    for (const Value* value : operands)
      list += StrCat(list.empty() ? "" : ", ", value->name, " ", value->desc.shape);
    return list;
  };
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (net.graph().LayerName(node->layers.front()) != "fc") continue;
    text += StrCat(node->op.name(), "[", node->op.Attributes(), "] ", names(node->inputs), " -> ",
                   names(node->outputs), "\n");
  }
  return text;
}

constexpr char kAlone[] =
    "Gemm[4x3 * 3x5(T)] h 4x3, fc.0 5x3, fc.1 5 -> y 4x5\n"
    "Gemm[5x4(T) * 4x3] y.diff 4x5, h 4x3 -> fc.0.diff 5x3\n"
    "SumToAxes[axis 1, num_axes 1] y.diff 4x5 -> fc.1.diff 5\n"
    "Gemm[4x5 * 5x3] y.diff 4x5, fc.0 5x3 -> h.diff 4x3\n";

TEST(SplitOverRanks, ReplacesTheStepsOfALayer) {
  EXPECT_EQ(StepsOf(0, 1), kAlone);
  EXPECT_EQ(
      StepsOf(1, 2),
      "HostCall[gather rows] h 4x3 -> fc/rows 8x3\n"
      "Gemm[8x3 * 3x3(T)] fc/rows 8x3, fc.0[2:5] 3x3, fc.1[2:5] 3 -> fc/outputs 8x3\n"
      "HostCall[exchange outputs] fc/outputs 8x3 -> y 4x5\n"
      "HostCall[exchange gradients] y.diff 4x5 -> fc/outputs.diff 8x3, fc/outputs.mean_diff 8x3\n"
      "Gemm[3x8(T) * 8x3] fc/outputs.mean_diff 8x3, fc/rows 8x3 -> fc.0.diff[2:5] 3x3\n"
      "SumToAxes[axis 1, num_axes 1] fc/outputs.mean_diff 8x3 -> fc.1.diff[2:5] 3\n"
      "Gemm[8x3 * 3x3] fc/outputs.diff 8x3, fc.0[2:5] 3x3 -> fc/rows.diff 8x3\n"
      "HostCall[scatter rows] fc/rows.diff 8x3 -> fc/rows.diff.0 4x3, fc/rows.diff.1 4x3\n"
      "EltwiseSum[] fc/rows.diff.0 4x3, fc/rows.diff.1 4x3 -> h.diff 4x3\n");
}

TEST(SplitOverRanks, DealsOutputsAsEvenlyAsPossible) {
  const char* const parts[] = {"fc.0[0:1] 1x3", "fc.0[1:3] 2x3", "fc.0[3:5] 2x3"};
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_THAT(StepsOf(rank, 3), ::testing::HasSubstr(parts[rank]));
}

TEST(SplitOverRanks, LeavesTestNetsAlone) {
  EXPECT_EQ(StepsOf(0, 2, TEST), "Gemm[4x3 * 3x5(T)] h 4x3, fc.0 5x3, fc.1 5 -> y 4x5\n");
}

}  // namespace
}  // namespace caffe
