#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

TEST(TRTLayerTest, SaysWhatToRunInstead) {
  LayerParameter param;
  param.set_type("TRT");
  param.mutable_trt_param()->set_deploy("deploy.prototxt");
  param.mutable_trt_param()->set_model("net.caffemodel");
  EXPECT_THAT(testing::ErrorText<Unsupported>([&] { LayerRegistry::CreateLayer(param); }),
              ::testing::AllOf(::testing::HasSubstr("'deploy.prototxt'"),
                               ::testing::HasSubstr("--weights=net.caffemodel")));
}

}  // namespace
}  // namespace caffe
