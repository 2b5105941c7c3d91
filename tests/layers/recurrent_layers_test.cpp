#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

// Without steps there would be no last state.
TEST(RecurrentLayersTest, NeedAStepInTime) {
  for (const std::string type : {"LSTM", "RNN"}) {
    NetParameter param;
    ParseTextProto(
        "layer { name: 'x' type: 'Input' top: 'x' top: 'cont' "
        "input_param { shape { dim: 0 dim: 2 } } } layer { name: 'r' type: '" +
            type + "' bottom: 'x' bottom: 'cont' top: 'y' recurrent_param { num_output: 2 } }",
        "net", &param);
    EXPECT_EQ(testing::ErrorText<InvalidArgument>([&] { Net net(param); }),
              "layer 'r' (" + type + "): bottom 0 has shape 0x2; there must be a step in time");
  }
}

}  // namespace
}  // namespace caffe
