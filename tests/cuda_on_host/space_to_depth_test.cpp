// Convolutions on blocks of pixels compute the same as on the pixels.
#include "caffe/cuda/space_to_depth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "first_layer.hpp"

namespace caffe::cuda {
namespace {

using first_layer::FirstLayer;
using ::testing::HasSubstr;

// First layers of ResNet, AlexNet and others; in the last, the image ends inside a block.
std::vector<FirstLayer> Layers(DType type) {
  return {{type, 3, Layout::kPlain, {{7, 7}, {2, 2}, {3, 3}, {1, 1}, 1}, {14, 11}},
          {type, 3, Layout::kChannelsLast, {{11, 11}, {4, 4}, {0, 0}, {1, 1}, 1}, {23, 27}},
          {type, 1, Layout::kPlain, {{5, 3}, {2, 2}, {0, 1}, {1, 1}, 1}, {9, 8}},
          {type, 3, Layout::kPlain, {{3, 5}, {2, 1}, {1, 2}, {1, 1}, 1}, {9, 7}},
          {type, 4, Layout::kPlain, {{3, 4}, {3, 3}, {1, 0}, {1, 1}, 1}, {9, 11}}};
}

class CudaSpaceToDepthTest : public ::testing::TestWithParam<DType> {};

TEST_P(CudaSpaceToDepthTest, ComputesTheSame) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  for (const FirstLayer& layer : Layers(GetParam())) {
    for (const bool is_gradient : {false, true}) {
      SCOPED_TRACE(StrCat(layer.geometry.ToString(), is_gradient ? " gradient" : ""));
      const auto inputs = layer.Inputs(is_gradient), outputs = layer.Outputs(is_gradient);
      const Op op = layer.OpOf(is_gradient);
      const KernelRequest request{op, inputs, outputs, *device};
      const Kernel plain = std::get<Kernel>(first_layer::Reference(request));
      const Kernel blocks = std::get<Kernel>(OnSpaceToDepth(request, first_layer::Reference));
      EXPECT_THAT(blocks.algorithms[0], HasSubstr(" on blocks of "));
      std::vector<OperandSet> modes = {{}};
      if (is_gradient) modes = {{}, {0}, {1}, {0, 1}};
      for (const OperandSet& accumulated : modes)
        first_layer::ExpectEqualResults(blocks, plain, request, accumulated);
    }
  }
}

TEST_P(CudaSpaceToDepthTest, IsForFewChannelsThatLieLastAndStepsOfPixels) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  const auto refusal = [&](FirstLayer layer, Layout layout = Layout::kChannelsLast) {
    auto inputs = layer.Inputs(false);
    inputs[0].layout = layout;
    const auto outputs = layer.Outputs(false);
    const Op op = layer.OpOf(false);
    const auto answer = OnSpaceToDepth({op, inputs, outputs, *device}, first_layer::Reference);
    const Refusal* const refused = std::get_if<Refusal>(&answer);
    return refused == nullptr ? "" : refused->reason;
  };
  FirstLayer layer{GetParam()};
  EXPECT_EQ(refusal(layer), "");
  EXPECT_EQ(refusal(layer, Layout::kPlain), "only floats whose channels lie last");
  layer.geometry.dilation = {1, 2};
  layer.size = {9, 12};
  EXPECT_EQ(refusal(layer), "a kernel with gaps");
  layer = {GetParam()};
  layer.geometry.stride = {1, 1};
  EXPECT_EQ(refusal(layer), "it goes pixel by pixel already");
  layer = {GetParam()};
  layer.geometry.stride = {4, 1};
  EXPECT_EQ(refusal(layer), "a kernel that skips pixels");
  layer = {GetParam(), 8};
  EXPECT_EQ(refusal(layer), "many channels");
  layer = {GetParam(), 4};
  layer.geometry.group = 2;
  EXPECT_EQ(refusal(layer), "groups, or no images");
}

INSTANTIATE_TEST_SUITE_P(Types, CudaSpaceToDepthTest,
                         ::testing::Values(DType::kFloat, DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace caffe::cuda
