// If a kernel may overwrite an input that nobody reads afterwards, both share memory: the sum that
// oneDNN adds a convolution's result to, and channels that a Permute does not move.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/conv.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

class ReplacedInputTest : public ::testing::Test {
 protected:
  struct Convolution {
    int channels, outputs, kernel, stride, group;
  };

  static std::string Conv(const std::string& top, const std::string& bottom, const Convolution& c) {
    return StrCat("layer { name: '", top, "' type: 'Convolution' bottom: '", bottom, "' top: '",
                  top, "' convolution_param { num_output: ", c.outputs, " kernel_size: ", c.kernel,
                  " pad: ", c.kernel / 2, " stride: ", c.stride, " group: ", c.group,
                  " weight_filler { type: 'msra' } bias_filler { type: 'uniform' } } } ");
  }

  // s = relu(conv(x) + r), where r is another convolution's result, which `more` may also read.
  static std::string Layers(const Convolution& c, int height, int width,
                            const std::string& more = "") {
    const Convolution pointwise{c.channels, c.outputs, 1, c.stride, 1};
    return StrCat("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: ",
                  c.channels, " dim: ", height, " dim: ", width, " } } } ") +
           Conv("r", "x", pointwise) + more + Conv("c", "x", c) +
           "layer { name: 's' type: 'Eltwise' bottom: 'r' bottom: 'c' top: 's' } "
           "layer { name: 'relu' type: 'ReLU' bottom: 's' top: 's' } " +
           Conv("t", "s", {c.outputs, 8, 1, 1, 1});
  }

  static std::unique_ptr<Net> Make(const std::string& layers, Precision precision, bool keep_all,
                                   bool for_any_processor = false) {
    NetParameter param = testing::ParseNet(layers);
    param.mutable_state()->set_phase(TEST);
    auto net = std::make_unique<Net>(param, NetOptions{.keep_all = keep_all,
                                                       .with_backward = false,
                                                       .seed = 5,
                                                       .precision = precision,
                                                       .for_any_processor = for_any_processor});
    Blob& x = *net->input_blobs()[0];
    for (int64_t i = 0; i < x.count(); ++i)
      x.mutable_cpu_data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    return net;
  }

  // Returns whether the last convolution with a sum uses its operand's memory.
  static bool IsInPlace(const Net& net) {
    bool is_in_place = false;
    for (const Node* node : net.graph().ScheduledNodes()) {
      const int added =
          node->op.As<ops::Conv>() != nullptr ? ops::AddedOperand(*node->op.epilogue()) : -1;
      if (added >= 0)
        is_in_place = node->inputs[added]->arena_offset == node->outputs[0]->arena_offset;
    }
    return is_in_place;
  }
};

TEST_F(ReplacedInputTest, TheSumTakesTheOperandsPlace) {
  EXPECT_TRUE(IsInPlace(*Make(Layers({16, 16, 1, 1, 1}, 8, 8), FP32, false)));
}

TEST_F(ReplacedInputTest, WhatIsReadLaterStays) {
  const std::string later = Layers({16, 16, 1, 1, 1}, 8, 8) +
                            "layer { name: 'z' type: 'Eltwise' bottom: 'r' bottom: 's' top: 'z' "
                            "eltwise_param { operation: PROD } } ";
  EXPECT_FALSE(IsInPlace(*Make(later, FP32, false)));
}

TEST_F(ReplacedInputTest, WhatTheWindowsReadStays) {
  const std::string self =
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 16 dim: 8 dim: 8 "
      "} } } " +
      Conv("r", "x", {16, 16, 1, 1, 1}) + Conv("c", "r", {16, 16, 3, 1, 1}) +
      "layer { name: 's' type: 'Eltwise' bottom: 'r' bottom: 'c' top: 's' } " +
      Conv("t", "s", {16, 8, 1, 1, 1});
  EXPECT_FALSE(IsInPlace(*Make(self, FP32, false)));
}

// As in SSD after its predictions, which are read as a matrix.
TEST_F(ReplacedInputTest, PermutedChannelsStayWhereTheyLie) {
  const auto layers = [](const std::string& more) {
    return "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 8 dim: 9 "
           "dim: 7 } } } " +
           Conv("a", "x", {8, 12, 3, 1, 1}) +
           "layer { name: 'p' type: 'Permute' bottom: 'a' top: 'p' permute_param { order: 0 "
           "order: 2 order: 3 order: 1 } } "
           "layer { name: 'f' type: 'Flatten' bottom: 'p' top: 'f' } " +
           more +
           "layer { name: 'y' type: 'InnerProduct' bottom: 'f' top: 'y' inner_product_param { "
           "num_output: 5 weight_filler { type: 'xavier' } } } ";
  };
  const auto is_in_place = [](const Net& net) {
    for (const Node* node : net.graph().ScheduledNodes()) {
      if (node->op.As<ops::Permute>() != nullptr)
        return node->inputs[0]->arena_offset == node->outputs[0]->arena_offset;
    }
    ADD_FAILURE() << "no Permute";
    return false;
  };
  const std::unique_ptr<Net> net = Make(layers(""), FP32, false);
  EXPECT_TRUE(is_in_place(*net));
  EXPECT_EQ(testing::Output(*net), testing::Output(*Make(layers(""), FP32, true)));
  const std::string later = Conv("b", "a", {12, 4, 1, 1, 1});
  EXPECT_FALSE(is_in_place(*Make(layers(later), FP32, false)));
}

// Kernels of a program may be chosen on another processor.
TEST_F(ReplacedInputTest, AProgramsPlanHasPlacesOfTheirOwn) {
  EXPECT_FALSE(IsInPlace(*Make(Layers({16, 16, 1, 1, 1}, 8, 8), FP32, false, true)));
}

TEST_F(ReplacedInputTest, NumbersAreThoseOfTheLayers) {
  const Convolution convolutions[] = {{16, 16, 1, 1, 1},  {64, 256, 1, 1, 1}, {512, 64, 1, 1, 1},
                                      {7, 16, 1, 1, 1},   {16, 24, 3, 1, 1},  {300, 33, 3, 2, 1},
                                      {16, 16, 3, 1, 16}, {32, 32, 5, 1, 4},  {24, 40, 1, 2, 1}};
  for (const Precision precision : {FP32, BF16, FP16, FP64}) {
    for (const Convolution& c : convolutions) {
      for (const auto& [height, width] : {std::pair{7, 7}, {1, 30}, {13, 5}}) {
        const std::string layers = Layers(c, height, width);
        const std::vector<float> want = testing::Output(*Make(layers, precision, true));
        const std::vector<float> got = testing::Output(*Make(layers, precision, false));
        ASSERT_EQ(want.size(), got.size());
        const float limit = precision == FP32 || precision == FP64 ? 1e-5F : 0.02F;
        const float largest = *std::max_element(want.begin(), want.end());
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_NEAR(want[i], got[i], limit * largest)
              << Precision_Name(precision) << ", " << c.channels << " channels, kernel " << c.kernel
              << ", group " << c.group << ", " << height << "x" << width;
        }
      }
    }
  }
}

}  // namespace
}  // namespace caffe
