#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

TEST(ClipLayerTest, NeedsItsBounds) {
  const auto refusal = [](const std::string& options) {
    return testing::ErrorText<InvalidArgument>([&] {
      NetParameter param;
      ParseTextProto(
          "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 } } } "
          "layer { name: 'c' type: 'Clip' bottom: 'x' top: 'y' " +
              options + " }",
          "clip", &param);
      Net net(param);
    });
  };
  EXPECT_EQ(refusal(""), "layer 'c' (Clip): clip_param { min max } is missing");
  EXPECT_EQ(refusal("clip_param { min: 2 max: 1 }"),
            "layer 'c' (Clip): clip_param has min 2 above max 1; exchange them");
}

}  // namespace
}  // namespace caffe
