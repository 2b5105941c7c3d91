// Issue: if an in-place layer followed a layer without a gradient, a 16-bit diff did not fit its
// blob (internal error). Found by dag_fuzz, seed 1929.
#include <gtest/gtest.h>

#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"

namespace caffe {
namespace {

TEST(IssueDiffTypeOfFirstVersion, ABlobWhoseFirstVersionHasNoGradientTakesOneInBfloat16) {
  NetParameter definition;
  ParseTextProto(R"(
    force_backward: true default_backward_type: BFLOAT16 state { phase: TRAIN }
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
    layer { name: "threshold" type: "Threshold" bottom: "x" top: "x" }
    layer { name: "scale" type: "Scale" bottom: "x" top: "x"
            scale_param { filler { type: "constant" value: 3 } } })",
                 "net", &definition);
  Net net(definition, {.keep_all = true});
  Blob& x = *net.blob_by_name("x");
  for (int i = 0; i < 6; ++i) x.mutable_cpu_data()[i] = static_cast<float>(i - 2);
  net.Forward();
  for (int i = 0; i < 6; ++i) x.mutable_cpu_diff()[i] = 0.5f;
  net.Backward();
  // The factors' gradients: 0.5 for each element that is above 0 in their column.
  const Blob& factors = *net.learnable_params()[0].blob;
  EXPECT_EQ(factors.cpu_diff()[0], 0.5f);
  EXPECT_EQ(factors.cpu_diff()[1], 0.5f);
  EXPECT_EQ(factors.cpu_diff()[2], 0.5f);
}

}  // namespace
}  // namespace caffe
