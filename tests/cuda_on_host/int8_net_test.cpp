// Nets of precision INT8 on a GPU: tests which steps compute in 8 bits, and that their numbers are
// close to the float net's. Our own slow kernels, which plans do not choose, replace cuDNN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "caffe/common.hpp"
#include "caffe/cuda/int8_products.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/quantised_nets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ConvLayer;
using testing::LayerOn;
using testing::PoolLayer;
using testing::ProductLayer;
using testing::TwoBottoms;

class CudaInt8NetTest : public ::testing::Test {
 protected:
  void SetUp() override { Caffe::set_mode(Caffe::GPU); }
  void TearDown() override { Caffe::set_mode(Caffe::CPU); }

  std::unique_ptr<Net> Make(const std::string& layers, Precision precision, bool keep_all = false,
                            bool for_any_processor = true) const {
    NetParameter param = testing::ParseNet(testing::kImage + layers);
    param.mutable_state()->set_phase(TEST);
    auto net = std::make_unique<Net>(
        param, NetOptions{.keep_all = keep_all,
                          .with_backward = false,
                          .seed = 7,
                          .precision = precision,
                          .calibration = precision == INT8 ? folder_.path("q.json") : "",
                          .for_any_processor = for_any_processor});
    float* x = net->blob_by_name("x")->mutable_cpu_data();
    for (int i = 0; i < 448; ++i) x[i] = static_cast<float>((i * 37) % 101) / 50 - 1;
    return net;
  }

  // Stores the ranges of the float net's values.
  void Calibrate(const std::string& layers) const {
    const auto net = Make(layers, FP32, /*keep_all=*/true);
    net->Forward();
    testing::WriteRanges("q", testing::RangesOf(*net), folder_.path("q.json"));
  }

  // "Conv, relu int8", "Softmax float": each forward step and the type of its result.
  static std::vector<std::string> Steps(const Net& net) {
    std::vector<std::string> steps;
    for (const Node* node : net.graph().ScheduledNodes()) {
      if (node->outputs[0] == nullptr || node->outputs[0]->kind == ValueKind::kState) continue;
      std::string text(node->op.name());
      if (const ops::Epilogue* epilogue = node->op.epilogue()) text += ops::EpilogueText(*epilogue);
      steps.push_back(StrCat(text, " ", Name(node->outputs[0]->desc.dtype)));
    }
    return steps;
  }

  static std::vector<float> Outputs(Net& net) {
    net.Forward();
    const Blob& blob = *net.output_blobs()[0];
    return {blob.cpu_data(), blob.cpu_data() + blob.count()};
  }

  void Check(const std::string& layers, const std::vector<std::string>& steps) const {
    Calibrate(layers);
    const auto exact = Make(layers, FP32), quantised = Make(layers, INT8);
    EXPECT_EQ(Steps(*quantised), steps);
    const std::vector<float> want = Outputs(*exact);
    ExpectNear(Outputs(*quantised), want);
    ExpectNear(Outputs(*quantised), want);  // from a captured graph
    ExpectNear(Outputs(*Make(layers, INT8, /*keep_all=*/true)), want);
  }

  static void ExpectNear(const std::vector<float>& got, const std::vector<float>& want) {
    float largest = 0, error = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::abs(want[i]));
      error = std::max(error, std::abs(got[i] - want[i]));
    }
    EXPECT_LT(error, 0.06F * largest);
    EXPECT_GT(error, 0) << "it is quantised";
  }

  testing::TemporaryFolder folder_;
};

TEST_F(CudaInt8NetTest, NumbersAreSignedAndStayBetweenProducts) {
  Check(ConvLayer("a", "x") + LayerOn("ReLU", "a") +
            PoolLayer("p", "a", "kernel_size: 2 stride: 2") + ConvLayer("b", "p") +
            LayerOn("ReLU", "b") + ProductLayer("ip", "b"),
        {"Reorder int8", "Conv, relu int8", "MaxPool int8", "Conv, relu int8", "Reorder int8",
         "Gemm float"});
}

TEST_F(CudaInt8NetTest, AResidualIsAddedInTheEpilogue) {
  Check(ConvLayer("a", "x") + LayerOn("ReLU", "a") + ConvLayer("b", "a") +
            TwoBottoms("Eltwise", "s", "a", "b") + LayerOn("ReLU", "s") + ConvLayer("c", "s") +
            PoolLayer("p", "c", "pool: AVE global_pooling: true") + ProductLayer("ip", "p"),
        {"Reorder int8", "Conv, relu int8", "Conv, add, relu int8", "Conv int8", "AvePool int8",
         "Reorder int8", "Gemm float"});
}

TEST_F(CudaInt8NetTest, SumsAndConcatenationsHaveSteps) {
  Check(ConvLayer("a", "x") + ConvLayer("b", "a") + ConvLayer("c", "a") +
            TwoBottoms("Concat", "d", "b", "c") + ConvLayer("e", "d") +
            "layer { name: 's' type: 'Eltwise' bottom: 'a' bottom: 'b' bottom: 'e' top: 's' } " +
            ConvLayer("f", "s"),
        {"Reorder int8", "Conv int8", "Conv int8", "Conv int8", "Concat int8", "Conv int8",
         "EltwiseSum int8", "Conv float"});
}

TEST_F(CudaInt8NetTest, ProductsOfBlobsReadNumbers) {
  Check(testing::AttentionLayers(),
        {"Reorder int8", "Conv int8", "Conv int8", "Conv int8", "Reorder int8", "Reorder int8",
         "BatchedGemm float", "Softmax float", "Cast int8", "Reorder int8", "BatchedGemm float"});
}

// A plan does not use 8 bits just to use the slow kernels.
TEST_F(CudaInt8NetTest, OnlyConvolutionsOfOneChannelEachAreFast) {
  const std::string layers =
      ConvLayer("a", "x") +
      "layer { name: 'd' type: 'Convolution' bottom: 'a' top: 'd' convolution_param { "
      "num_output: 4 group: 4 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } } " +
      LayerOn("ReLU6", "d");
  Calibrate(layers);
  const auto net = Make(layers, INT8, false, /*for_any_processor=*/false);
  std::vector<std::string> kernels;
  for (const PlanStep& step : PlanSteps(*net)) {
    if (step.op.starts_with("Conv[")) kernels.push_back(step.kernel);
  }
  EXPECT_THAT(kernels, ::testing::ElementsAre("conv-reference", "conv-int8-channels"));
  ExpectNear(Outputs(*net), Outputs(*Make(layers, FP32)));
}

TEST(CudaInt8ChipTest, OlderOnesAreNamed) {
  EXPECT_EQ(cuda::WhyNoTensorCores(7, 5), "");
  EXPECT_EQ(cuda::WhyNoTensorCores(10, 0), "");
  EXPECT_THAT(cuda::WhyNoTensorCores(7, 0), ::testing::HasSubstr("compute capability 7.0"));
}

}  // namespace
}  // namespace caffe
