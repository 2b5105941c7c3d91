// A 1x1 convolution and a depthwise one after it are one step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/cpu/processor.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/planned_ops.hpp"
#include "tests/support/quantised_nets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

class PairConvolutionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::HasWideVectors()) GTEST_SKIP() << "this processor has no AVX-512";
  }

  static std::string Layer(const std::string& top, const std::string& bottom, int outputs,
                           const std::string& window) {
    return StrCat("layer { name: '", top, "' type: 'Convolution' bottom: '", bottom, "' top: '",
                  top, "' convolution_param { num_output: ", outputs, " ", window,
                  " weight_filler { type: 'msra' } bias_filler { type: 'uniform' } } } ");
  }

  static std::string Relu(const std::string& blob) {
    return StrCat("layer { name: '", blob, "_relu' type: 'ReLU' bottom: '", blob, "' top: '", blob,
                  "' } ");
  }

  static std::string Input(int height, int width) {
    return StrCat(
        "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 8 "
        "dim: ",
        height, " dim: ", width, " } } } ");
  }

  static constexpr const char* kOne = "kernel_size: 1";
  static constexpr const char* kDepthwise = "kernel_size: 3 pad: 1 group: 48";

  // A block of MobileNet-v2.
  static std::string Block(const std::string& window = kDepthwise) {
    return Layer("a", "x", 48, kOne) + Relu("a") + Layer("b", "a", 48, window) + Relu("b") +
           Layer("y", "b", 8, kOne);
  }

  static std::unique_ptr<Net> Make(const std::string& layers, Precision precision = FP32,
                                   std::vector<std::string> disabled = {},
                                   const std::string& calibration = "") {
    NetParameter param = testing::ParseNet("name: 'p' " + layers);
    param.mutable_state()->set_phase(TEST);
    NetOptions options{.keep_all = false, .with_backward = false, .seed = 5};
    options.disabled_passes = std::move(disabled);
    options.precision = precision;
    options.calibration = calibration;
    auto net = std::make_unique<Net>(param, options);
    Blob& x = *net->input_blobs()[0];
    for (int64_t i = 0; i < x.count(); ++i)
      x.mutable_cpu_data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    return net;
  }

  static int Pairs(const Net& net) { return testing::CountOps(net, "Conv+Conv"); }
};

TEST_F(PairConvolutionsTest, ABlockIsPairedInFloatAndIn16Bits) {
  for (const Precision precision : {FP32, BF16, FP16}) {
    const auto net = Make(Input(9, 12) + Block(), precision);
    EXPECT_EQ(Pairs(*net), 1) << Precision_Name(precision);
    for (const Node* node : net->graph().ScheduledNodes()) {
      if (testing::NameOf(node->op) == "Conv+Conv") {
        EXPECT_EQ(node->op.Attributes(),
                  "Conv[kernel 1x1, relu] Conv[kernel 3x3, pad 1x1, group 48, relu]");
        EXPECT_THAT(node->kernel.name, ::testing::StartsWith("conv-pair-"));
        EXPECT_EQ(node->layers.size(), 4U);
      }
    }
  }
}

TEST_F(PairConvolutionsTest, NumbersAreThoseWithoutIt) {
  for (const Precision precision : {FP32, FP64, BF16, FP16}) {
    for (const auto& [height, width] : {std::pair{9, 12}, {15, 31}, {1, 1}, {2, 3}}) {
      for (const char* stride : {"", " stride: 2"}) {
        const std::string layers = Input(height, width) + Block(StrCat(kDepthwise, stride));
        const auto off = Make(layers, precision, {"pair-convolutions"});
        const auto on = Make(layers, precision);
        EXPECT_EQ(Pairs(*off), 0);
        const float limit = precision == FP32 || precision == FP64 ? 1e-6F : 0.03F;
        EXPECT_LT(testing::MostDifferent(testing::Output(*off), testing::Output(*on)), limit)
            << Precision_Name(precision) << ", " << height << "x" << width << stride;
      }
    }
  }
}

TEST_F(PairConvolutionsTest, In8BitsNumbersAreThoseWithoutIt) {
  if (!testing::HasInt8()) GTEST_SKIP() << "this processor has no instructions for 8-bit products";
  const testing::TemporaryFolder folder;
  // Signed and unsigned numbers before, between and after them.
  for (const float least : {-1.0F, 0.0F}) {
    for (const std::string& relu : {std::string(), Relu("b")}) {
      for (const char* stride : {"", " stride: 2"}) {
        const std::string layers =
            Input(15, 17) + Layer("a", "x", 48, kOne) + (least < 0 ? "" : Relu("a")) +
            Layer("b", "a", 48, StrCat(kDepthwise, stride)) + relu + Layer("y", "b", 8, kOne);
        testing::WriteRanges("p",
                             {{"x", {least, 1}},
                              {"a", {4 * least, 4}},
                              {"b", {relu.empty() ? -4.0F : 0.0F, 4}},
                              {"y", {-6, 6}}},
                             folder.path("p.json"));
        const auto make = [&](std::vector<std::string> disabled) {
          return Make(layers, INT8, std::move(disabled), folder.path("p.json"));
        };
        const auto on = make({}), off = make({"pair-convolutions"});
        EXPECT_EQ(Pairs(*on), 1) << least << stride;
        EXPECT_EQ(Pairs(*off), 0);
        EXPECT_EQ(testing::Output(*off), testing::Output(*on)) << least << relu << stride;
      }
    }
  }
}

// The net's output is float, which no kernel of pairs in 8 bits writes.
TEST_F(PairConvolutionsTest, In8BitsTheResultIsIn8Bits) {
  if (!testing::HasInt8()) GTEST_SKIP() << "this processor has no instructions for 8-bit products";
  const testing::TemporaryFolder folder;
  testing::WriteRanges("p", {{"x", {0, 1}}, {"a", {0, 4}}, {"b", {-4, 4}}}, folder.path("p.json"));
  const std::string layers =
      Input(9, 12) + Layer("a", "x", 48, kOne) + Relu("a") + Layer("b", "a", 48, kDepthwise);
  EXPECT_EQ(Pairs(*Make(layers, INT8, {}, folder.path("p.json"))), 0);
}

TEST_F(PairConvolutionsTest, WhatOthersReadIsMade) {
  const std::string twice = Block() + Layer("z", "a", 8, kOne);
  EXPECT_EQ(Pairs(*Make(Input(9, 12) + twice)), 0);
}

TEST_F(PairConvolutionsTest, WhatNoKernelPairsStaysApart) {
  for (const char* window :
       {"kernel_size: 3 pad: 1", "kernel_size: 3 pad: 1 group: 24",
        "kernel_size: 5 pad: 2 group: 48", "kernel_size: 3 stride: 3 group: 48",
        "kernel_size: 3 pad: 2 dilation: 2 group: 48"}) {
    EXPECT_EQ(Pairs(*Make(Input(9, 12) + Block(window))), 0) << window;
  }
}

TEST_F(PairConvolutionsTest, WhereAllBlobsAreKeptNothingIsPaired) {
  NetParameter param = testing::ParseNet("name: 'p' " + Input(9, 12) + Block());
  param.mutable_state()->set_phase(TEST);
  EXPECT_EQ(Pairs(Net(param, NetOptions{.keep_all = true, .with_backward = false})), 0);
}

TEST_F(PairConvolutionsTest, NewWeightsAreTakenUp) {
  const auto on = Make(Input(9, 12) + Block());
  const auto off = Make(Input(9, 12) + Block(), FP32, {"pair-convolutions"});
  const std::vector<float> before = testing::Output(*on);
  for (Net* net : {on.get(), off.get()}) {
    for (const Net::LearnableParam& param : net->learnable_params()) {
      if (param.name[0] == 'y') continue;
      for (int64_t i = 0; i < param.blob->count(); ++i) param.blob->mutable_cpu_data()[i] *= 2;
    }
  }
  EXPECT_LT(testing::MostDifferent(testing::Output(*off), testing::Output(*on)), 1e-6F);
  EXPECT_GT(testing::MostDifferent(before, testing::Output(*on)), 0.1F);
}

TEST_F(PairConvolutionsTest, AnotherShapeIsPlannedAnew) {
  const auto net = Make(Input(9, 12) + Block());
  testing::Output(*net);
  net->input_blobs()[0]->Reshape({3, 8, 17, 5});
  net->Reshape();
  const auto off = Make(Input(9, 12) + Block(), FP32, {"pair-convolutions"});
  off->input_blobs()[0]->Reshape({3, 8, 17, 5});
  off->Reshape();
  for (Net* one : {net.get(), off.get()}) {
    Blob& x = *one->input_blobs()[0];
    for (int64_t i = 0; i < x.count(); ++i)
      x.mutable_cpu_data()[i] = static_cast<float>(i * 31 % 97) / 50 - 1;
  }
  EXPECT_EQ(Pairs(*net), 1);
  EXPECT_LT(testing::MostDifferent(testing::Output(*off), testing::Output(*net)), 1e-6F);
}

TEST_F(PairConvolutionsTest, ANumberThatIsNoneStaysSo) {
  const auto net = Make(Input(9, 12) + Block());
  net->input_blobs()[0]->mutable_cpu_data()[0] = NAN;
  EXPECT_TRUE(std::isnan(testing::Output(*net)[0]));
}

}  // namespace
}  // namespace caffe
