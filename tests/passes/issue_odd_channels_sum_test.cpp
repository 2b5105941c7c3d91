// In bfloat16 a 1x1 convolution with an odd number of channels gave wrong sums if it included the
// sum of a residual block.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

std::vector<float> OutputOf(const std::string& layers, bool keep_all) {
  Net net(testing::ParseNet(layers), {.keep_all = keep_all, .with_backward = false, .seed = 3});
  Blob& data = *net.input_blobs()[0];
  for (int i = 0; i < data.count(); ++i)
    data.mutable_cpu_data()[i] = static_cast<float>(i * 37 % 11 - 5) / 4;
  const Blob& output = *net.Forward()[0];
  return {output.cpu_data(), output.cpu_data() + output.count()};
}

std::string Conv(const std::string& top, int channels) {
  return StrCat("layer { name: '", top, "' type: 'Convolution' bottom: 'x' top: '", top,
                "' convolution_param { num_output: ", channels,
                " kernel_size: 1 weight_filler { type: 'msra' } } } ");
}

TEST(IssueOddChannelsSumTest, TheFusedSumIsThatOfTheLayers) {
  for (const int channels : {1, 7, 8, 17, 33}) {
    for (const int pixels : {29, 30, 31, 59, 60, 90}) {
      for (const char* relu : {"", "layer { name: 'r' type: 'ReLU' bottom: 's' top: 's' }"}) {
        const std::string layers = StrCat(
            "default_forward_type: BFLOAT16 layer { name: 'x' type: 'Input' top: 'x' "
            "input_param { shape { dim: 1 dim: ",
            channels, " dim: ", pixels, " dim: 1 } } } ", Conv("a", 16), Conv("b", 16),
            "layer { name: 's' type: 'Eltwise' bottom: 'b' bottom: 'a' top: 's' } ", relu);
        const std::vector<float> want = OutputOf(layers, true), has = OutputOf(layers, false);
        ASSERT_EQ(want.size(), has.size());
        float most = 0;
        for (size_t i = 0; i < want.size(); ++i) most = std::max(most, std::abs(want[i] - has[i]));
        EXPECT_LT(most, 0.1f) << channels << " channels, " << pixels << " pixels";
      }
    }
  }
}

}  // namespace
}  // namespace caffe
