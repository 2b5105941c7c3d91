#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

TEST(RefusedLayersTest, SayWhatIsThereInstead) {
  for (const auto& [type, instead] :
       std::map<std::string, std::string>{{"RegionLoss", "YoloDetectionOutput reads the boxes"},
                                          {"Yolov3", "Yolov3DetectionOutput reads the boxes"}}) {
    LayerParameter param;
    param.set_type(type);
    EXPECT_THAT(testing::ErrorText<Unsupported>([&] { LayerRegistry::CreateLayer(param); }),
                ::testing::HasSubstr(instead));
  }
}

}  // namespace
}  // namespace caffe
