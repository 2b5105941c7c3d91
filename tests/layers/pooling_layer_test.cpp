#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

void MakePoolingNet(const std::string& options) {
  NetParameter param;
  ParseTextProto(
      StrCat("layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 dim: 6 "
             "dim: 6 } } } layer { name: 'pool' type: 'Pooling' bottom: 'x' top: 'y' "
             "pooling_param { kernel_size: 3 ",
             options, " } }"),
      "pooling", &param);
  Net net(param);
}

TEST(PoolingLayerTest, TakesPadAndStrideInOneFormOnly) {
  EXPECT_NO_THROW(MakePoolingNet("pad: 1 stride_h: 2 stride_w: 1"));
  for (const char* options : {"pad: 1 pad_h: 1 pad_w: 1", "pad_h: 1", "pad_w: 0"}) {
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { MakePoolingNet(options); }),
                HasSubstr("needs pad, or pad_h and pad_w"))
        << options;
  }
  for (const char* options : {"stride: 1 stride_h: 1 stride_w: 2", "stride_w: 1"}) {
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { MakePoolingNet(options); }),
                HasSubstr("needs stride, or stride_h and stride_w"))
        << options;
  }
}

// 6 pixels and windows of 3 with stride 2: the last window would begin at 4 and reach beyond.
TEST(PoolingLayerTest, CeilModeIsAnotherNameOfRoundMode) {
  const auto width = [](const std::string& options) {
    const auto net = caffe::testing::NetOf(StrCat(
        "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 1 dim: 6 dim: "
        "6 } } } layer { name: 'pool' type: 'Pooling' bottom: 'x' top: 'y' pooling_param { "
        "kernel_size: 3 stride: 2 ",
        options, " } }"));
    return net->blob_by_name("y")->shape()[3];
  };
  for (const char* options : {"", "ceil_mode: true", "round_mode: CEIL ceil_mode: true"})
    EXPECT_EQ(width(options), 3) << options;
  for (const char* options :
       {"ceil_mode: false", "round_mode: FLOOR", "round_mode: FLOOR ceil_mode: false"})
    EXPECT_EQ(width(options), 2) << options;
  EXPECT_THAT(
      ErrorText<InvalidArgument>([] { MakePoolingNet("round_mode: FLOOR ceil_mode: true"); }),
      HasSubstr("round_mode is FLOOR and ceil_mode true, which contradict each other"));
  EXPECT_THAT(
      ErrorText<InvalidArgument>([] { MakePoolingNet("round_mode: CEIL ceil_mode: false"); }),
      HasSubstr("round_mode is CEIL and ceil_mode false"));
}

// A row of 5 pixels with windows of 3 around every second one.
std::unique_ptr<Net> RowNet(const std::string& types, const std::string& mask) {
  return caffe::testing::NetOf(StrCat(
      "force_backward: true ", types,
      " layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 1 dim: 1 "
      "dim: 5 } } } layer { name: 'pool' type: 'Pooling' bottom: 'x' top: 'y' ",
      mask,
      " pooling_param { kernel_h: 1 kernel_w: 3 stride_h: 1 stride_w: 2 pad_h: 0 pad_w: 1 } }"));
}

std::vector<float> GradientOfRow(Net& net) {
  const std::vector<float> x = {1, 3, 2, 3, 0}, dy = {1, 2, 4};
  std::copy(x.begin(), x.end(), net.blob_by_name("x")->mutable_cpu_data<float>());
  net.Forward();
  const Blob& y = *net.blob_by_name("y");
  EXPECT_THAT(std::vector<float>(y.cpu_data<float>(), y.cpu_data<float>() + 3),
              ::testing::ElementsAre(3, 3, 3));
  std::copy(dy.begin(), dy.end(), net.blob_by_name("y")->mutable_cpu_diff<float>());
  net.Backward();
  const float* dx = net.blob_by_name("x")->cpu_diff<float>();
  return {dx, dx + 5};
}

// This holds for every form of backward's own mask. The first of equal maxima is chosen.
TEST(PoolingLayerTest, AMaskTopShowsPlacesInTheImageAndChangesNoGradient) {
  for (const char* types : {"", "default_forward_type: BFLOAT16 default_backward_type: BFLOAT16",
                            "default_forward_type: DOUBLE default_backward_type: DOUBLE"}) {
    const std::unique_ptr<Net> plain = RowNet(types, ""), shown = RowNet(types, "top: 'mask'");
    EXPECT_THAT(GradientOfRow(*plain), ::testing::ElementsAre(0, 3, 0, 4, 0)) << types;
    EXPECT_EQ(GradientOfRow(*shown), GradientOfRow(*plain)) << types;
    const float* mask = shown->blob_by_name("mask")->cpu_data<float>();
    EXPECT_THAT(std::vector<float>(mask, mask + 3), ::testing::ElementsAre(1, 1, 3)) << types;
  }
}

// A window with more positions than a byte can number.
TEST(PoolingLayerTest, GradientsOfLargeWindowsFindTheirWinner) {
  for (const int size : {15, 16, 20}) {
    const auto net = caffe::testing::NetOf(StrCat(
        "force_backward: true layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: "
        "1 dim: 1 dim: ",
        size, " dim: ", size,
        " } } } layer { name: 'pool' type: 'Pooling' "
        "bottom: 'x' top: 'y' pooling_param { global_pooling: true } }"));
    float* x = net->blob_by_name("x")->mutable_cpu_data<float>();
    const int count = size * size;
    for (int i = 0; i < count; ++i) x[i] = static_cast<float>(i * 7 % count == count - 1);
    const auto winner = std::find(x, x + count, 1.0f) - x;
    net->Forward();
    net->blob_by_name("y")->mutable_cpu_diff<float>()[0] = 5;
    net->Backward();
    const float* dx = net->blob_by_name("x")->cpu_diff<float>();
    for (int i = 0; i < count; ++i) EXPECT_EQ(dx[i], i == winner ? 5 : 0) << size << " " << i;
  }
}

}  // namespace
}  // namespace caffe
