// If a Filter selects nothing, the products after it have no rows. oneDNN divided by that number
// when it made its kernel for bfloat16, which ended the process.
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

TEST(IssueEmptyProductTest, NothingSelectedIsPlannedInEachType) {
  for (const char* type : {"FLOAT", "BFLOAT16", "FLOAT16", "DOUBLE"}) {
    for (const bool keep_all : {false, true}) {
      const NetParameter param =
          testing::ParseNet(std::string("state { phase: TRAIN } default_forward_type: ") + type +
                            " default_backward_type: " + type + R"(
          layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 15 } } }
          layer { name: 'select' type: 'Input' top: 'select' input_param { shape { dim: 2 } } }
          layer { name: 'filter' type: 'Filter' bottom: 'x' bottom: 'select' top: 'some' }
          layer { name: 'fc1' type: 'InnerProduct' bottom: 'some' top: 'fc1'
                  inner_product_param { num_output: 31 weight_filler { type: 'xavier' } } }
          layer { name: 'fc2' type: 'InnerProduct' bottom: 'fc1' top: 'fc2'
                  inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }
          layer { name: 'loss' type: 'Reduction' bottom: 'fc2' top: 'loss' loss_weight: 1 })");
      Net net(param, {.keep_all = keep_all, .seed = 1});
      std::fill_n(net.blob_by_name("select")->mutable_cpu_data(), 2, 0.0f);
      EXPECT_EQ(net.ForwardBackward(), 0) << type;
      EXPECT_EQ(net.layer_params("fc1")[0]->asum_diff(), 0) << type;
    }
  }
}

}  // namespace
}  // namespace caffe
