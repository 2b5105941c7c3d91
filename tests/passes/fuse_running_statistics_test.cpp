// Updating running statistics together with those of the batch changes no bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/blob.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/classifier_net.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

std::string ConvAndNorm(const std::string& name, const std::string& bottom,
                        const std::string& norm) {
  return StrCat("layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '",
                name, "' convolution_param { num_output: 8 kernel_size: 3 pad: 1 bias_term: false ",
                "weight_filler { type: 'xavier' } } } layer { name: '", name, "_bn' bottom: '",
                name, "' top: '", name, "' ", norm, " } layer { name: '", name,
                "_relu' type: 'ReLU' bottom: '", name, "' top: '", name, "' } ");
}

NetParameter NetOf(const std::string& layers, const std::string& last) {
  return testing::ClassifierNet(layers, last, {.height = 12, .width = 12});
}

// Each kind of running statistics: decaying sums, averages, and those of layer BN.
NetParameter EachKind() {
  return NetOf(
      ConvAndNorm("a", "data", "type: 'BatchNorm'") +
          ConvAndNorm("b", "a", "type: 'BatchNorm' batch_norm_param { scale_bias: true }") +
          ConvAndNorm("c", "b", "type: 'BN'"),
      "c");
}

std::string SharedNorm(const std::string& name, bool follows_batch) {
  return StrCat("type: 'BatchNorm' param { name: '", name, "m' } param { name: '", name,
                "v' } param { name: '", name,
                "f' } batch_norm_param { use_global_stats: ", follows_batch ? "false }" : "true }");
}

// The parameters, including running statistics, after three passes.
std::string Trained(Net& net) {
  for (int pass = 0; pass < 3; ++pass) net.ForwardBackward();
  NetParameter param;
  net.ToProto(&param);
  std::string blobs;
  for (const LayerParameter& layer : param.layer()) {
    for (const BlobProto& blob : layer.blobs()) blobs += blob.SerializeAsString();
  }
  return blobs;
}

TEST(FuseRunningStatisticsTest, SavesAStepAndNoBit) {
  for (const Precision precision : {FP32, FP16, BF16, FP64}) {
    for (const bool keep_all : {false, true}) {
      NetOptions options{.keep_all = keep_all, .seed = 1, .precision = precision};
      Net fused(EachKind(), options);
      options.disabled_passes = {"fuse-running-statistics"};
      Net plain(EachKind(), options);
      EXPECT_EQ(testing::CountOps(fused, "UpdateRunningStatistics"), 0);
      EXPECT_EQ(testing::CountOps(plain, "UpdateRunningStatistics"), 3);
      EXPECT_EQ(Trained(fused), Trained(plain)) << Precision_Name(precision) << keep_all;
    }
  }
}

// Layers that read shared statistics between two updates read the same values as before.
TEST(FuseRunningStatisticsTest, SharedStatisticsAreUpdatedInTheSameOrder) {
  const NetParameter param = NetOf(ConvAndNorm("a", "data", SharedNorm("s", true)) +
                                       ConvAndNorm("b", "a", SharedNorm("s", false)) +
                                       ConvAndNorm("c", "b", SharedNorm("s", true)),
                                   "c");
  NetOptions options{.keep_all = false, .seed = 1};
  Net fused(param, options);
  options.disabled_passes = {"fuse-running-statistics"};
  Net plain(param, options);
  EXPECT_EQ(Trained(fused), Trained(plain));
}

// A batch of no items has statistics of 0.
TEST(FuseRunningStatisticsTest, NoItemsDoNotZeroThem) {
  NetParameter param;
  ParseTextProto(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 0 dim: 4 dim: 3 dim: 3 "
      "} } } layer { name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'y' batch_norm_param { "
      "scale_bias: true } }",
      "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  const auto mean_after = [&](const NetOptions& options) {
    Net net(param, options);
    Blob& mean = *net.layer_params("bn").at(0);
    std::fill_n(mean.mutable_cpu_data(), mean.count(), 2.0f);
    net.Forward();
    net.Forward();
    return mean.cpu_data()[0];
  };
  NetOptions options{.keep_all = false, .seed = 1};
  const float fused = mean_after(options);
  options.disabled_passes = {"fuse-running-statistics"};
  EXPECT_EQ(fused, mean_after(options));
}

// Recomputed copies in backward leave the update out.
TEST(FuseRunningStatisticsTest, ANormalisationThatIsRecomputedUpdatesOnce) {
  NetOptions options{.keep_all = false, .seed = 1};
  Net usual(EachKind(), options);
  int64_t smallest = MemoryOfPlan(usual).total();
  for (const Plan& plan : TrainingNet(usual).TradeOffs())
    smallest = std::min(smallest, MemoryOf(*plan.graph, 0).total());
  options.memory_limit = smallest;
  Net limited(EachKind(), options);
  EXPECT_GT(testing::CountOps(limited, "BatchNorm"), testing::CountOps(usual, "BatchNorm"));
  EXPECT_EQ(Trained(limited), Trained(usual));
}

}  // namespace
}  // namespace caffe
