// Parameters shared by layers with different forward_type: the memory had the owner's type while
// the other layer read and wrote it in its own type, beyond its end if that was double.
#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

NetParameter Shared(const std::string& defaults, const std::string& type_of_sharer) {
  return testing::ParseNet(defaults + R"(
      force_backward: true
      layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 4 } } }
      layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param { name: 'w' }
              inner_product_param { num_output: 3 bias_term: false
                                    weight_filler { type: 'constant' value: 1 } } }
      layer { name: 'b' type: 'InnerProduct' bottom: 'x' top: 'b' param { name: 'w' }
              inner_product_param { num_output: 3 bias_term: false } )" +
                           type_of_sharer + " }");
}

void ExpectOneMemory(const NetParameter& param) {
  Net net(param);
  std::fill_n(net.blob_by_name("x")->mutable_cpu_data(), 4, 1.0f);
  net.Forward();
  for (const char* top : {"a", "b"}) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(net.blob_by_name(top)->cpu_data()[i], 4) << top;
  }
  std::fill_n(net.blob_by_name("a")->mutable_cpu_diff(), 3, 2.0f);
  std::fill_n(net.blob_by_name("b")->mutable_cpu_diff(), 3, 1.0f);
  net.Backward();
  const Blob& weights = *net.layer_params("a")[0];
  for (int i = 0; i < 12; ++i) EXPECT_EQ(weights.cpu_diff()[i], 3) << i;
}

TEST(IssueB1Test, AFloatOwnerAndASharerInDouble) {
  ExpectOneMemory(Shared("", "forward_type: DOUBLE"));
}

TEST(IssueB1Test, AnOwnerInDoubleAndAFloatSharer) {
  ExpectOneMemory(
      Shared("default_forward_type: DOUBLE default_backward_type: DOUBLE", "forward_type: FLOAT"));
}

TEST(IssueB1Test, AFloatOwnerAndA16BitSharer) {
  ExpectOneMemory(Shared("", "forward_type: BFLOAT16 backward_type: BFLOAT16"));
}

}  // namespace
}  // namespace caffe
