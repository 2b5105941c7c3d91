// Each output of Downsample searched the whole axis for its neighbours, so the time to plan a net
// grew with the square of the axis.
#include <gtest/gtest.h>

#include <ctime>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

TEST(IssueDownsampleLongAxisTest, PlanningTakesTimeInProportionToTheAxis) {
  const std::clock_t begin = std::clock();
  const auto net = testing::NetOf(R"(
      layer { name: 'x' type: 'Input' top: 'x'
              input_param { shape { dim: 1 dim: 1 dim: 1 dim: 262144 } } }
      layer { name: 'l' type: 'Downsample' bottom: 'x' top: 'y'
              downsample_param { top_height: 1 top_width: 131072 } })");
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5);
  Blob& x = *net->input_blobs()[0];
  for (int64_t i = 0; i < x.count(); ++i) x.mutable_cpu_data<float>()[i] = static_cast<float>(i);
  const float* y = net->Forward()[0]->cpu_data<float>();
  EXPECT_NEAR(y[131071], 262143, 1);
  EXPECT_NEAR(y[65536], 131073, 1);
}

}  // namespace
}  // namespace caffe
