// Tests whether a result may use the memory of its inputs.
#include <gtest/gtest.h>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe {
namespace {

TEST(NodeTest, AKernelMayWantMemoryOfItsOwnForTheResult) {
  Node gradient{.op = Op(ops::BatchNormGrad{})};
  EXPECT_TRUE(gradient.MayReplace(0));
  gradient.kernel.needs_own_output = true;
  EXPECT_FALSE(gradient.MayReplace(0));
}

TEST(NodeTest, AKernelMayAskForAnInputsMemory) {
  Node conv{.op = Op(ops::Conv{})};
  EXPECT_FALSE(conv.MayReplace(2));
  conv.kernel.replaced_input = 2;
  EXPECT_TRUE(conv.MayReplace(2));
  EXPECT_FALSE(conv.MayReplace(1));
}

}  // namespace
}  // namespace caffe
