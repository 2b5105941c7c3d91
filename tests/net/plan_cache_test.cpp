// A net keeps the plans of shapes that it has seen.
#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

constexpr char kPlannedNet[] = R"(
  layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
  layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
          convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'msra' } } }
  layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
  layer { name: 'pool' type: 'Pooling' bottom: 'conv' top: 'pool'
          pooling_param { pool: AVE global_pooling: true } }
  layer { name: 'ip' type: 'InnerProduct' bottom: 'pool' top: 'ip'
          inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }
  layer { name: 'loss' type: 'Reduction' bottom: 'ip' top: 'loss' loss_weight: 1
          reduction_param { operation: SUMSQ } }
)";

// The output of one pass over `images` of size x size, and the gradient of the first weights.
std::vector<float> NumbersOfPass(Net& net, int images, int size) {
  Blob& data = *net.blob_by_name("data");
  data.Reshape({images, 3, size, size});
  for (int i = 0; i < data.count(); ++i)
    data.mutable_cpu_data()[i] = static_cast<float>(i * 37 % 11 - 5) / 5;
  net.ClearParamDiffs();
  std::vector<float> numbers = {net.ForwardBackward()};
  const Blob& weights = *net.layer_params("conv")[0];
  numbers.insert(numbers.end(), weights.cpu_diff(), weights.cpu_diff() + weights.count());
  return numbers;
}

class PlanCacheTest : public ::testing::TestWithParam<bool> {};

TEST_P(PlanCacheTest, AShapeSeenBeforeIsNotCompiledAgain) {
  const NetOptions options{.keep_all = GetParam(), .seed = 5};
  Net net(testing::ParseNet(kPlannedNet), options);
  const std::vector<float> before = NumbersOfPass(net, 2, 8);
  const Graph* const plan = &net.graph();
  for (int round = 0; round < 3; ++round) {
    Net fresh(testing::ParseNet(kPlannedNet), options);
    EXPECT_EQ(NumbersOfPass(net, 3, 11), NumbersOfPass(fresh, 3, 11)) << round;
    EXPECT_NE(&net.graph(), plan);
    EXPECT_EQ(NumbersOfPass(net, 2, 8), before) << round;
    EXPECT_EQ(&net.graph(), plan) << "compiled again";
  }
}

TEST_P(PlanCacheTest, AnImagePyramidIsCompiledOnce) {
  Net net(testing::ParseNet(kPlannedNet), {.keep_all = GetParam(), .seed = 5});
  std::vector<const Graph*> plans;
  for (int round = 0; round < 2; ++round) {
    for (int step = 0; step < 10; ++step) {
      net.blob_by_name("data")->Reshape({1, 3, 8 + 2 * step, 8 + 2 * step});
      net.Reshape();
      if (round == 0) {
        plans.push_back(&net.graph());
      } else {
        EXPECT_EQ(&net.graph(), plans[step]) << step;
      }
    }
  }
}

// A plan that never ran must not keep the memory that it was offered.
TEST_P(PlanCacheTest, MemoryIsHandedOnByAPlanThatDidNotRun) {
  Net net(testing::ParseNet(kPlannedNet), {.keep_all = GetParam(), .seed = 5});
  NumbersOfPass(net, 2, 8);
  ProgramMemory::Blocks before = TrainingNet(net).executor().ReleaseMemory();
  ASSERT_NE(before.arena, nullptr);
  TrainingNet(net).executor().OfferMemory(before);
  for (const int size : {7, 6, 5}) {
    net.blob_by_name("data")->Reshape({2, 3, size, size});
    net.Reshape();
  }
  const ProgramMemory::Blocks after = TrainingNet(net).executor().ReleaseMemory();
  EXPECT_EQ(after.arena, before.arena);
  EXPECT_EQ(after.workspace, before.workspace);
  EXPECT_EQ(after.arena_bytes, before.arena_bytes);
}

TEST_P(PlanCacheTest, WeightsThatChangedMeanwhileAreRead) {
  Net net(testing::ParseNet(std::string("default_forward_type: BFLOAT16 ") + kPlannedNet),
          {.keep_all = GetParam(), .seed = 5});
  const float before = NumbersOfPass(net, 2, 8)[0];
  NumbersOfPass(net, 2, 9);
  Blob& weights = *net.layer_params("ip")[0];
  for (int i = 0; i < weights.count(); ++i) weights.mutable_cpu_data()[i] *= 2;
  EXPECT_NEAR(NumbersOfPass(net, 2, 8)[0], 4 * before, 0.02f * before);
}

TEST_P(PlanCacheTest, AShapeThatDoesNotFitLeavesTheNetAsItWas) {
  Net net(testing::ParseNet(kPlannedNet), {.keep_all = GetParam(), .seed = 5});
  const std::vector<float> before = NumbersOfPass(net, 2, 8);
  EXPECT_THROW(NumbersOfPass(net, 2, 1), InvalidArgument);
  EXPECT_EQ(NumbersOfPass(net, 2, 8), before);
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanCacheTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "KeepAll" : "Reuse"; });

}  // namespace
}  // namespace caffe
