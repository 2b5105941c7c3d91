#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void MakeNet(const std::string& options) {
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
  EXPECT_NO_THROW(MakeNet("pad: 1 stride_h: 2 stride_w: 1"));
  for (const char* options : {"pad: 1 pad_h: 1 pad_w: 1", "pad_h: 1", "pad_w: 0"}) {
    EXPECT_THAT([&] { MakeNet(options); },
                ThrowsMessage<InvalidArgument>(HasSubstr("needs pad, or pad_h and pad_w")))
        << options;
  }
  for (const char* options : {"stride: 1 stride_h: 1 stride_w: 2", "stride_w: 1"}) {
    EXPECT_THAT([&] { MakeNet(options); },
                ThrowsMessage<InvalidArgument>(HasSubstr("needs stride, or stride_h and stride_w")))
        << options;
  }
}

}  // namespace
}  // namespace caffe
