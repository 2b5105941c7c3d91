// Convolutions with channels of zeros appended to the existing ones compute the same.
#include "caffe/cuda/padded_channels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "first_layer.hpp"

namespace caffe::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace first_layer;

class CudaPaddedChannelsTest : public ::testing::TestWithParam<DType> {};

TEST_P(CudaPaddedChannelsTest, ComputeTheSame) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  for (const bool is_gradient : {false, true}) {
    const FirstLayer layer{GetParam()};
    const auto inputs = layer.Inputs(is_gradient), outputs = layer.Outputs(is_gradient);
    const Op op = layer.OpOf(is_gradient);
    const KernelRequest request{op, inputs, outputs, *device};
    const Kernel plain = std::get<Kernel>(Reference(request));
    EXPECT_THAT(PaddedChannelCounts(request), ElementsAre(4, 8));
    for (const int64_t channels : {4, 8}) {
      const Kernel padded = std::get<Kernel>(OnPaddedChannels(request, channels, Reference));
      EXPECT_EQ(padded.algorithms[0], StrCat("eng1 on ", channels, " channels"));
      std::vector<OperandSet> modes = {{}};
      if (is_gradient) modes = {{}, {0}, {1}, {0, 1}};
      for (const OperandSet& accumulated : modes)
        ExpectEqualResults(padded, plain, request, accumulated);
    }
  }
}

TEST_P(CudaPaddedChannelsTest, TakeFiltersThatLieChannelsLast) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  const FirstLayer layer{GetParam(), 3, Layout::kChannelsLast};
  const auto inputs = layer.Inputs(false), outputs = layer.Outputs(false);
  const Op op = layer.OpOf(false);
  const KernelRequest request{op, inputs, outputs, *device};
  const Kernel plain = std::get<Kernel>(Reference(request));
  for (const int64_t channels : {4, 8}) {
    const Kernel padded = std::get<Kernel>(OnPaddedChannels(request, channels, Reference));
    ExpectEqualResults(padded, plain, request, {});
  }
}

TEST_P(CudaPaddedChannelsTest, AreForFewChannelsThatLieLast) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  const auto counts = [&](int64_t channels, Layout layout, int64_t group) {
    const FirstLayer layer{GetParam(), channels};
    auto inputs = layer.Inputs(false);
    inputs[0].layout = layout;
    const auto outputs = layer.Outputs(false);
    ops::Conv conv{layer.geometry};
    conv.geometry.group = group;
    return PaddedChannelCounts({Op(conv), inputs, outputs, *device});
  };
  EXPECT_THAT(counts(1, Layout::kChannelsLast, 1), ElementsAre(4, 8));
  EXPECT_THAT(counts(6, Layout::kChannelsLast, 1), ElementsAre(8));
  EXPECT_THAT(counts(8, Layout::kChannelsLast, 1), IsEmpty());
  EXPECT_THAT(counts(3, Layout::kPlain, 1), IsEmpty());
  EXPECT_THAT(counts(6, Layout::kChannelsLast, 2), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Types, CudaPaddedChannelsTest,
                         ::testing::Values(DType::kFloat, DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace caffe::cuda
