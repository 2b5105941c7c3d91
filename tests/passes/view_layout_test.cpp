// Steps that only pass an image on, also in other layouts than Caffe's.
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/convert.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

constexpr char kViewedConv[] =
    " type: 'Convolution' convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "
    "'xavier' } } }";

std::string Between(const std::string& layer, const std::string& top) {
  return "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 1 dim: 8 dim: "
         "9 "
         "dim: 9 } } } layer { name: 'a' bottom: 'data' top: 'a'" +
         std::string(kViewedConv) + layer + " layer { name: 'b' bottom: '" + top + "' top: 'b'" +
         kViewedConv;
}

int64_t Reorders(const Net& net) {
  return std::ranges::count_if(net.graph().ScheduledNodes(), [](const Node* node) {
    return node->op.As<ops::Reorder>() != nullptr;
  });
}

// One Dropout comes before the first convolution; the last one writes in Caffe's layout.
TEST(ViewLayoutTest, DropoutOfInferenceTakesAnyLayout) {
  const Net net(
      testing::ParseNet("state { phase: TEST } " +
                        Between("layer { name: 'd' type: 'Dropout' bottom: 'a' top: 'a' }", "a")),
      {.keep_all = false, .with_backward = false});
  EXPECT_EQ(Reorders(net), 1);
}

TEST(ViewLayoutTest, SplitTakesAnyLayout) {
  const Net net(
      testing::ParseNet("state { phase: TEST } " +
                        Between("layer { name: 's' type: 'Split' bottom: 'a' top: 's' }", "s")),
      {.keep_all = false, .with_backward = false});
  EXPECT_EQ(Reorders(net), 1);
}

// As in SSD: its predictions are needed channels-last, which they already are.
TEST(ViewLayoutTest, PermuteThatPutsChannelsLastMovesNothing) {
  const std::string permute =
      "layer { name: 'p' type: 'Permute' bottom: 'a' top: 'p' permute_param { order: 0 order: 2 "
      "order: 3 order: 1 } } layer { name: 'f' type: 'Flatten' bottom: 'p' top: 'f' } ";
  const Net net(testing::ParseNet("state { phase: TEST } " + Between(permute, "a")),
                {.keep_all = false, .with_backward = false});
  EXPECT_EQ(Reorders(net), 1);
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->op.As<ops::Permute>() == nullptr) continue;
    EXPECT_EQ(node->inputs[0]->desc.layout, Layout::kChannelsLast);
    EXPECT_EQ(node->kernel.name, "permute-in-order");
  }
}

TEST(ViewLayoutTest, NormalizeTakesAnyLayout) {
  const Net net(
      testing::ParseNet("state { phase: TEST } " +
                        Between("layer { name: 'n' type: 'Normalize' bottom: 'a' top: 'n' "
                                "norm_param { across_spatial: false channel_shared: false } }",
                                "n")),
      {.keep_all = false, .with_backward = false});
  EXPECT_EQ(Reorders(net), 1);
}

}  // namespace
}  // namespace caffe
