// 1x1 convolutions with strides read only some pixels; the others are not computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/pool.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/quantised_nets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class HoistStridesTest : public ::testing::Test {
 protected:
  static std::string Input(int height, int width) {
    return StrCat(
        "name: 'q' layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 8 "
        "dim: ",
        height, " dim: ", width, " } } } ");
  }

  static std::string Conv(const std::string& top, const std::string& bottom, int kernel,
                          const std::string& options = "") {
    return StrCat(
        "layer { name: '", top, "' type: 'Convolution' bottom: '", bottom, "' top: '", top,
        "' convolution_param { num_output: 8 kernel_size: ", kernel, " pad: ", kernel / 2,
        " weight_filler { type: 'msra' } bias_filler { type: 'uniform' } ", options, " } } ");
  }

  static std::string Relu(const std::string& blob) {
    return StrCat("layer { name: '", blob, "_relu' type: 'ReLU' bottom: '", blob, "' top: '", blob,
                  "' } ");
  }

  static std::string Sum(const std::string& top, const std::string& a, const std::string& b) {
    return StrCat("layer { name: '", top, "' type: 'Eltwise' bottom: '", a, "' bottom: '", b,
                  "' top: '", top, "' } ");
  }

  // A block of a residual net, whose sum is read by two 1x1 convolutions with strides.
  static std::string Block(const std::string& shortcut, const std::string& stride = "stride: 2") {
    return Conv("in", "x", 1) + Relu("in") + Conv("a", "in", 1) + Relu("a") + Conv("b", "a", 3) +
           Relu("b") + Conv("c", "b", 1) + shortcut + Sum("s", shortcut.empty() ? "in" : "r", "c") +
           Relu("s") + Conv("p", "s", 1, stride) + Conv("q", "s", 1, stride) + Sum("y", "p", "q");
  }

  static std::unique_ptr<Net> Make(const std::string& layers, const NetOptions& options) {
    NetParameter param = testing::ParseNet(layers);
    param.mutable_state()->set_phase(TEST);
    auto net = std::make_unique<Net>(param, options);
    Blob& x = *net->input_blobs()[0];
    for (int64_t i = 0; i < x.count(); ++i)
      x.mutable_cpu_data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    return net;
  }

  static NetOptions Options(Precision precision, std::vector<std::string> disabled = {}) {
    NetOptions options{.keep_all = false, .with_backward = false, .seed = 5};
    options.disabled_passes = std::move(disabled);
    options.precision = precision;
    return options;
  }

  // "Conv 3x3 / 2" and so on, in the order of the schedule.
  static std::vector<std::string> Windows(const Net& net) {
    std::vector<std::string> windows;
    for (const Node* node : net.graph().ScheduledNodes()) {
      if (const auto* conv = node->op.As<ops::Conv>())
        windows.push_back(
            StrCat("Conv ", conv->geometry.kernel[0], " / ", conv->geometry.stride[0]));
      if (const auto* pool = node->op.As<ops::AvePool>())
        windows.push_back(
            StrCat("AvePool ", pool->geometry.kernel[0], " / ", pool->geometry.stride[0]));
    }
    return windows;
  }
};

TEST_F(HoistStridesTest, ABlockComputesWhatTheNextOneReads) {
  const auto net = Make(Input(9, 12) + Block(""), Options(FP32));
  EXPECT_THAT(Windows(*net), ElementsAre("Conv 1 / 1", "Conv 1 / 1", "Conv 3 / 2", "AvePool 1 / 2",
                                         "Conv 1 / 1", "Conv 1 / 1", "Conv 1 / 1"));
}

TEST_F(HoistStridesTest, AProjectionComputesWhatIsAddedOfIt) {
  const auto net = Make(Input(9, 12) + Block(Conv("r", "in", 1)), Options(FP32));
  EXPECT_THAT(Windows(*net), Not(Contains("AvePool 1 / 2")));
  EXPECT_THAT(Windows(*net), Contains("Conv 3 / 2"));
}

TEST_F(HoistStridesTest, WhatIsReadWholeIsComputedWhole) {
  const std::string whole =
      Block("") + Conv("t", "s", 1) + "layer { name: 'quiet' type: 'Silence' bottom: 't' } ";
  const std::string wide = Block("") + Conv("t", "s", 3, "stride: 2");
  const std::string apart = Block("") + Conv("t", "s", 1, "stride: 3");
  const std::string unstrided = Block("", "stride: 1");
  for (const std::string& layers : {whole, wide, apart, unstrided})
    EXPECT_EQ(Windows(*Make(Input(9, 12) + layers, Options(FP32)))[2], "Conv 3 / 1") << layers;
}

TEST_F(HoistStridesTest, NoConvolutionIsMadeThatLeavesOutPixels) {
  const std::string windows_of_four =
      Conv("a", "x", 2, "stride: 2") + Conv("y", "a", 1, "stride: 2");
  EXPECT_THAT(Windows(*Make(Input(9, 12) + windows_of_four, Options(FP32))),
              ElementsAre("Conv 2 / 2", "Conv 1 / 2"));
  const std::string pixels =
      "layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a' convolution_param { "
      "num_output: 8 kernel_size: 1 stride: 2 } } " +
      Conv("y", "a", 1, "stride: 2");
  EXPECT_THAT(Windows(*Make(Input(9, 12) + pixels, Options(FP32))),
              ElementsAre("Conv 1 / 4", "Conv 1 / 1"));
}

TEST_F(HoistStridesTest, ABlobThatIsKeptStaysWhole) {
  NetOptions options = Options(FP32);
  options.keep_all = true;
  EXPECT_THAT(Windows(*Make(Input(9, 12) + Block(""), options)), Not(Contains("Conv 3 / 2")));
}

TEST_F(HoistStridesTest, BlobsHaveTheShapesOfTheDefinition) {
  const auto net = Make(Input(9, 12) + Block(""), Options(FP32));
  EXPECT_EQ(net->blob_by_name("s")->shape(), Shape({2, 8, 9, 12}));
}

TEST_F(HoistStridesTest, NumbersAreThoseWithoutIt) {
  for (const Precision precision : {FP32, FP64, BF16, FP16}) {
    for (const auto& [height, width] : {std::pair{9, 12}, {8, 7}, {1, 1}, {2, 3}}) {
      for (const char* stride :
           {"stride: 2", "stride_h: 1 stride_w: 2", "stride_h: 3 stride_w: 2"}) {
        for (const std::string& shortcut : {std::string(), Conv("r", "in", 1)}) {
          const std::string layers = Input(height, width) + Block(shortcut, stride);
          const auto off = Make(layers, Options(precision, {"hoist-strides"}));
          const auto on = Make(layers, Options(precision));
          const float limit = precision == FP32 || precision == FP64 ? 1e-6F : 0.03F;
          EXPECT_LT(testing::MostDifferent(testing::Output(*off), testing::Output(*on)), limit)
              << Precision_Name(precision) << ", " << height << "x" << width << ", " << stride;
        }
      }
    }
  }
}

TEST_F(HoistStridesTest, ANumberThatIsNoneStaysSo) {
  const auto net = Make(Input(9, 12) + Block(""), Options(FP32));
  net->input_blobs()[0]->mutable_cpu_data()[0] = NAN;
  const std::vector<float> output = testing::Output(*net);
  EXPECT_TRUE(std::isnan(output[0]));
}

TEST_F(HoistStridesTest, In8BitsTheNumbersAreThoseWithoutIt) {
  if (!testing::HasInt8()) GTEST_SKIP() << "this processor has no instructions for 8-bit products";
  const testing::TemporaryFolder folder;
  const std::string layers = Input(9, 12) + Block("");
  testing::WriteRanges("q",
                       {{"x", {-1, 1}},
                        {"in", {0, 4}},
                        {"a", {0, 4}},
                        {"b", {0, 6}},
                        {"c", {-6, 6}},
                        {"s", {0, 8}},
                        {"p", {-8, 8}},
                        {"q", {-8, 8}},
                        {"y", {-9, 9}}},
                       folder.path("q.json"));
  NetOptions options = Options(INT8);
  options.calibration = folder.path("q.json");
  const auto on = Make(layers, options);
  options.disabled_passes = {"hoist-strides"};
  const auto off = Make(layers, options);
  EXPECT_THAT(Windows(*on), Contains("Conv 3 / 2"));
  for (const Node* node : on->graph().ScheduledNodes()) {
    if (node->op.As<ops::AvePool>() != nullptr) {
      EXPECT_EQ(node->outputs[0]->desc.dtype, DType::kUInt8);
    }
  }
  EXPECT_EQ(testing::Output(*off), testing::Output(*on));
}

}  // namespace
}  // namespace caffe
