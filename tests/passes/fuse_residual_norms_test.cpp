// A residual sum and the normalisation that reads it are one step, which changes no bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/classifier_net.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kRegion = "EltwiseSum+RmsNorm";

NetOptions OptionsOf(Precision precision, bool fuses) {
  NetOptions options{.keep_all = false, .seed = 1, .precision = precision};
  if (!fuses) options.disabled_passes = {"fuse-residual-norms"};
  return options;
}

// Two blocks of a transformer without attention: what the second adds to is the first one's sum.
NetParameter Blocks(const std::string& shape = "dim: 0 dim: 3 dim: 72", const std::string& sum = "",
                    const std::string& norm = "") {
  const auto block = [&](const std::string& n, const std::string& x, const std::string& y) {
    return StrCat("layer { name: 't", n, "' type: 'TanH' bottom: '", y, "' top: 't", n,
                  "' } layer { name: 's", n, "' type: 'Eltwise' bottom: '", x, "' bottom: 't", n,
                  "' top: 's", n, "' eltwise_param { ", sum, " } } layer { name: 'n", n,
                  "' type: 'RMSNorm' bottom: 's", n, "' top: 'n", n, "' rms_norm_param { ", norm,
                  " } } ");
  };
  return testing::ClassifierNet(
      StrCat("layer { name: 'x' type: 'Reshape' bottom: 'data' top: 'x' reshape_param { shape { ",
             shape, " } } } ", block("1", "x", "x"), block("2", "s1", "n1")),
      "n2");
}

// The parameters after three steps, with their gradients.
std::string AfterTraining(Net& net) {
  for (int pass = 0; pass < 3; ++pass) net.ForwardBackward();
  NetParameter param;
  net.ToProto(&param, /*write_diff=*/true);
  std::string blobs;
  for (const LayerParameter& layer : param.layer()) {
    for (const BlobProto& blob : layer.blobs()) blobs += blob.SerializeAsString();
  }
  return blobs;
}

TEST(FuseResidualNormsTest, SavesAStepAndNoBit) {
  for (const Precision precision : {FP32, FP16, BF16, FP64}) {
    for (const std::string norm : {"", "affine: false"}) {
      const NetParameter param = Blocks("dim: 0 dim: 3 dim: 72", "", norm);
      Net fused(param, OptionsOf(precision, true)), plain(param, OptionsOf(precision, false));
      EXPECT_EQ(testing::CountOps(fused, kRegion), 2) << Precision_Name(precision);
      EXPECT_EQ(testing::CountOps(plain, kRegion), 0);
      EXPECT_EQ(AfterTraining(fused), AfterTraining(plain)) << Precision_Name(precision) << norm;
    }
  }
}

TEST(FuseResidualNormsTest, ItsOwnKernelRuns) {
  const Net net(Blocks(), OptionsOf(FP32, true));
  int steps = 0;
  for (const PlanStep& step : PlanSteps(net)) {
    if (step.op.rfind("Fused", 0) != 0) continue;
    EXPECT_EQ(step.kernel, "sum-rms-norm");
    ++steps;
  }
  EXPECT_EQ(steps, 2);
}

TEST(FuseResidualNormsTest, OthersStayTwoSteps) {
  const auto refusals = [](const NetParameter& param) {
    const Net net(param, OptionsOf(FP32, true));
    EXPECT_EQ(testing::CountOps(net, kRegion), 0);
    const std::vector<PlanFusion> fusions = PlanFusions(net);
    return std::ranges::find(fusions, "fuse-residual-norms", &PlanFusion::row)->refusals;
  };
  EXPECT_THAT(refusals(Blocks("dim: 0 dim: 3 dim: 9 dim: 8")), Contains(HasSubstr("an image")));
  EXPECT_THAT(refusals(Blocks("dim: 0 dim: 3 dim: 72", "coeff: 1 coeff: 0.5")),
              Contains(HasSubstr("without factors")));
}

}  // namespace
}  // namespace caffe
