// In a keep-all net two layers read one conversion of a blob, so a partial run that began at the
// second layer saw the blob's previous values.
#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

TEST(IssueB6Test, APartialRunReadsTheBlobAsItIs) {
  const std::string reader =
      "type: 'InnerProduct' bottom: 'h' inner_product_param { num_output: 1 "
      "bias_term: false weight_filler { type: 'constant' value: 1 } } } ";
  Net net(testing::ParseNet(
      "default_forward_type: FLOAT default_forward_math: BFLOAT16 "
      "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 1 dim: 4 } } } "
      "layer { name: 'h' type: 'Power' bottom: 'data' top: 'h' } "
      "layer { name: 'a' top: 'a' " +
      reader + "layer { name: 'b' top: 'b' " + reader));
  for (int i = 0; i < 4; ++i)
    net.blob_by_name("data")->mutable_cpu_data()[i] = static_cast<float>(i + 1);
  net.ForwardFromTo(0, 2);
  std::fill_n(net.blob_by_name("h")->mutable_cpu_data(), 4, 1.0f);
  net.ForwardFromTo(3, 3);
  EXPECT_EQ(net.blob_by_name("b")->cpu_data()[0], 4);
}

}  // namespace
}  // namespace caffe
