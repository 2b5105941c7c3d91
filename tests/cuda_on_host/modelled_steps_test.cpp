// The time of a training step on an H200, as docs/gpu_internals.md models it: from the bytes and
// the arithmetic of the plan's steps, which do not depend on the kernels.
#include <gtest/gtest.h>

#include "caffe/common.hpp"
#include "caffe/net.hpp"
#include "caffe/net/roofline.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/plan_summary.hpp"

namespace caffe {
namespace {

// The same peaks as in `-gpu H200`.
constexpr DevicePeaks kH200{.memory_bytes = 4800e9,
                            .float_flops = 67e12,
                            .double_products = 67e12,
                            .tf32_products = 494e12,
                            .half_products = 989e12,
                            .link_bytes = 450e9};

NetParameter InBatchesOf256(const std::string& file) {
  NetParameter net = testing::WithInputs(testing::SourcePath(file + ".prototxt"), TRAIN);
  for (LayerParameter& layer : *net.mutable_layer()) {
    for (BlobShape& shape :
         *(layer.has_input_param() ? layer.mutable_input_param()->mutable_shape()
                                   : layer.mutable_dummy_data_param()->mutable_shape())) {
      shape.set_dim(0, 256);
    }
  }
  return net;
}

struct ModelledStep {
  const char* net;
  Precision precision;
  double milliseconds;       // forward and backward
  double without_epilogues;  // with fuse-gradient-epilogues disabled
};

void PrintTo(const ModelledStep& step, std::ostream* out) {
  *out << step.net << " " << Precision_Name(step.precision);
}

class CudaModelledStepsTest : public ::testing::TestWithParam<ModelledStep> {
 protected:
  void SetUp() override { Caffe::set_mode(Caffe::GPU); }
  void TearDown() override { Caffe::set_mode(Caffe::CPU); }

  static double Milliseconds(NetOptions options) {
    options.precision = GetParam().precision;
    const Net net(InBatchesOf256(GetParam().net), options);
    return RooflineOfPlan(net, std::nullopt, kH200).milliseconds();
  }
};

TEST_P(CudaModelledStepsTest, IsAsDocumented) {
  const NetOptions options{.keep_all = false, .seed = 1, .allocate = false};
  NetOptions without = options;
  without.disabled_passes = {"fuse-gradient-epilogues"};
  EXPECT_NEAR(Milliseconds(options), GetParam().milliseconds, 0.06);
  EXPECT_NEAR(Milliseconds(without), GetParam().without_epilogues, 0.06);
}

INSTANTIATE_TEST_SUITE_P(
    Nets, CudaModelledStepsTest,
    ::testing::Values(ModelledStep{"benchmarks/nets/resnet50", BF16, 29.0, 31.5},
                      ModelledStep{"benchmarks/nets/resnet50", FP16, 27.7, 30.2},
                      ModelledStep{"benchmarks/nets/googlenet", BF16, 10.0, 11.7},
                      ModelledStep{"benchmarks/nets/alexnet", BF16, 3.1, 3.3},
                      ModelledStep{"models/vgg16/train_val", BF16, 52.0, 56.9}));

}  // namespace
}  // namespace caffe
