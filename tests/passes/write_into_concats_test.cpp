// On processors, convolutions write between the channels of others if a kernel can.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/core/instructions.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/conv.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/fused_regions.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/planned_ops.hpp"
#include "tests/support/quantised_nets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

// Returns whether this build and processor have a kernel other than the reference, for all windows
// and not only for those of 3x3.
bool HasKernel(DType data) {
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCpu, typeid(ops::Fused));
  const Op region = testing::IntoOf(ops::Conv{}, 0, {1, 1, 1, 1});
  return std::ranges::any_of(candidates, [&](const KernelCandidate& one) {
    return one.rank < KernelRank::kReference && one.name != "conv-into-by-winograd" &&
           one.Serves(region, {data, DType::kFloat});
  });
}

std::string ConvOf(const std::string& name, const std::string& bottom, int outputs, int kernel) {
  return StrCat("layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '",
                name, "' convolution_param { num_output: ", outputs, " kernel_size: ", kernel,
                " pad: ", kernel / 2,
                " weight_filler { type: 'msra' } bias_filler { type: 'uniform' } } } layer { "
                "name: '",
                name, "_relu' type: 'ReLU' bottom: '", name, "' top: '", name, "' } ");
}

// A block of SqueezeNet between two convolutions.
std::string Fire(int height, int width, int second = 48, int squeezed = 16) {
  return StrCat(
             "name: 'fire' layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 "
             "dim: 4 dim: ",
             height, " dim: ", width, " } } } ") +
         ConvOf("s", "x", squeezed, 1) + ConvOf("a", "s", 16, 1) + ConvOf("b", "s", second, 3) +
         "layer { name: 'c' type: 'Concat' bottom: 'a' bottom: 'b' top: 'c' } " +
         ConvOf("y", "c", 8, 1);
}

std::unique_ptr<Net> MakeFire(const std::string& layers, Precision precision,
                              std::vector<std::string> disabled = {},
                              const std::string& calibration = "", bool for_any = false) {
  NetParameter param = testing::ParseNet(layers);
  param.mutable_state()->set_phase(TEST);
  NetOptions options{.keep_all = false,
                     .with_backward = false,
                     .seed = 5,
                     .precision = precision,
                     .for_any_processor = for_any};
  options.disabled_passes = std::move(disabled);
  options.calibration = calibration;
  auto net = std::make_unique<Net>(param, options);
  Blob& x = *net->input_blobs()[0];
  for (int64_t i = 0; i < x.count(); ++i)
    x.mutable_cpu_data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  return net;
}

int Intos(const Net& net) {
  return testing::CountOps(net, "Conv+InsertChannels");
}

class WriteIntoConcatsTest : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (!HasKernel(GetParam() == FP32 ? DType::kFloat : DType::kBFloat16))
      GTEST_SKIP() << "this processor has no kernel for it";
  }
  static void ExpectSame(const std::string& layers) {
    const auto on = MakeFire(layers, GetParam());
    const auto off = MakeFire(layers, GetParam(), {"write-into-concats"});
    EXPECT_EQ(Intos(*on), 2);
    EXPECT_EQ(Intos(*off), 0);
    EXPECT_LT(on->graph().ScheduledNodes().size(), off->graph().ScheduledNodes().size());
    EXPECT_LE(on->graph().arena_bytes, off->graph().arena_bytes);
    EXPECT_LT(testing::MostDifferent(testing::Output(*off), testing::Output(*on)),
              GetParam() == FP32 ? 1e-5F : 0.02F)
        << layers;
  }
};

TEST_P(WriteIntoConcatsTest, NumbersAreThoseWithoutIt) {
  for (const auto& [height, width] : {std::pair{9, 12}, {1, 1}, {2, 31}, {30, 29}})
    ExpectSame(Fire(height, width));
}

TEST_P(WriteIntoConcatsTest, KernelsOf3x3WriteParts) {
  const std::string layers = Fire(61, 60, 64, 64);
  ExpectSame(layers);
  const bool by_tiles = GetParam() != FP32 && InstructionsOfThisProcessor().may_use_tiles;
  const std::string name = by_tiles ? "conv-into-by-tiles" : "conv-into-by-winograd";
  EXPECT_TRUE(std::ranges::any_of(MakeFire(layers, GetParam())->graph().ScheduledNodes(),
                                  [&](const Node* node) { return node->kernel.name == name; }));
}
INSTANTIATE_TEST_SUITE_P(Types, WriteIntoConcatsTest, ::testing::Values(FP32, BF16),
                         [](const auto& type) { return Precision_Name(type.param); });

TEST(WriteIntoConcatsIn8BitsTest, NumbersAreThoseWithoutIt) {
  if (!HasKernel(DType::kInt8)) GTEST_SKIP() << "this processor has no kernel for it";
  const testing::TemporaryFolder folder;
  const testing::Ranges ranges = {{"x", {-1, 1}}, {"s", {0, 4}}, {"a", {0, 4}},
                                  {"b", {0, 5}},  {"c", {0, 5}}, {"y", {0, 6}}};
  testing::WriteRanges("fire", ranges, folder.path("p.json"));
  for (const auto& [height, width] : {std::pair{9, 12}, {1, 1}, {30, 29}}) {
    const auto on = MakeFire(Fire(height, width), INT8, {}, folder.path("p.json"));
    const auto off =
        MakeFire(Fire(height, width), INT8, {"write-into-concats"}, folder.path("p.json"));
    EXPECT_EQ(Intos(*on), 2);
    EXPECT_EQ(Intos(*off), 0);
    EXPECT_EQ(testing::Output(*off), testing::Output(*on)) << height << "x" << width;
  }
}

TEST(ConcatsOfConvolutionsTest, WhatNoKernelWritesIsJoined) {
  EXPECT_EQ(Intos(*MakeFire(Fire(9, 12), FP64)), 0);
  // Parts begin at multiples of 16 bytes.
  EXPECT_EQ(Intos(*MakeFire(Fire(9, 12, 44), BF16)), 0);
}

TEST(ConcatsOfConvolutionsTest, ProgramsForAnyProcessorHaveNone) {
  EXPECT_EQ(Intos(*MakeFire(Fire(9, 12), BF16, {}, "", /*for_any=*/true)), 0);
}

}  // namespace
}  // namespace caffe
