// Nets that do not fit into the memory of this machine are refused before they take any: memory
// that the system promises and does not have ends a process without a word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

constexpr int kOutputs = 2000;

// `items` numbers and so many outputs of as many.
std::string ManyOutputs(int64_t items) {
  std::string net = "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: " +
                    std::to_string(items) + " } } }\n";
  for (int i = 0; i < kOutputs; ++i) {
    net += "layer { name: 'p" + std::to_string(i) + "' type: 'Power' bottom: 'data' top: 'p" +
           std::to_string(i) + "' power_param { shift: " + std::to_string(i) + " } }\n";
  }
  return net;
}

// 16 TiB.
TEST(MemoryFitsTest, ANetThatDoesNotFitIsRefused) {
  EXPECT_THAT(ErrorText<DeviceError>([] { testing::NetOf(ManyOutputs((int64_t{1} << 31) - 1)); }),
              AllOf(HasSubstr("out of memory: the plan needs"), HasSubstr("are free; batch_size")));
}

// 8 TiB of weights: in training they are there from the beginning; in testing they may be those of
// another net.
TEST(MemoryFitsTest, WeightsCountInTraining) {
  std::string net =
      "layer { name: 'data' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: "
      "32768 } } }\n";
  for (int i = 0; i < 1000; ++i) {
    net += "layer { name: 'p" + std::to_string(i) + "' type: 'InnerProduct' bottom: 'x' top: 'y" +
           std::to_string(i) + "' inner_product_param { num_output: 65535 } }\n";
  }
  EXPECT_THAT(ErrorText<DeviceError>([&] { testing::NetOf("state { phase: TRAIN }\n" + net); }),
              AllOf(HasSubstr("out of memory: the plan needs"), HasSubstr("parameters")));
}

// 4 MiB of weights, and a solver that keeps 16 TiB for them.
TEST(MemoryFitsTest, TheSolverCounts) {
  NetParameter net;
  ParseTextProto(
      "state { phase: TRAIN } "
      "layer { name: 'data' type: 'Input' top: 'x' input_param { shape { dim: [1, 1024] } } } "
      "layer { name: 'p' type: 'InnerProduct' bottom: 'x' top: 'y' "
      "inner_product_param { num_output: 1024 } }",
      "test", &net);
  EXPECT_THAT(ErrorText<DeviceError>([&] { Net(net, {.solver_states = 1 << 22}); }),
              AllOf(HasSubstr("out of memory: the plan needs"), HasSubstr(", solver 164"),
                    HasSubstr("not even batch_size 1 fits")));
}

TEST(MemoryFitsTest, ShapesThatDoNotFitAreRefusedAndThoseBeforeStillRun) {
  const auto net = testing::NetOf(ManyOutputs(2));
  Blob& data = *net->blob_by_name("data");
  data.Reshape({1 << 30});
  EXPECT_THAT(ErrorText<DeviceError>([&] { net->Forward(); }),
              AllOf(HasSubstr("out of memory: the plan needs"), HasSubstr("batch_size")));
  data.Reshape({2});
  data.mutable_cpu_data()[1] = 5;
  net->Forward();
  EXPECT_EQ(net->blob_by_name("p7")->cpu_data()[1], 12);
}

}  // namespace
}  // namespace caffe
