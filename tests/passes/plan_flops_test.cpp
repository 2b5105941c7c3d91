// The work that a plan reports does not depend on how kernels read weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/gemm.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/plan_summary.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;

// The operations of convolutions and products, which every plan of a net has in some form.
double FlopsOfProducts(const Net& net) {
  double flops = 0;
  for (const Node* node : net.graph().ScheduledNodes()) {
    const Op& op = node->op;
    const bool is_product = op.As<ops::Conv>() != nullptr || op.As<ops::Fused>() != nullptr ||
                            op.As<ops::ConvGradData>() != nullptr || op.As<ops::Gemm>() != nullptr;
    if (is_product) flops += node->Flops();
  }
  return flops;
}

NetOptions Inference(Precision precision) {
  return {.keep_all = false, .with_backward = false, .precision = precision, .allocate = false};
}

std::vector<fs::path> DeployNets() {
  std::vector<fs::path> nets;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(testing::SourcePath("models"))) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("deploy") && name.ends_with(".prototxt")) nets.push_back(entry.path());
  }
  std::ranges::sort(nets);
  return nets;
}

TEST(PlanFlopsTest, AreThoseOfFloatForEveryModelToDeploy) {
  const std::vector<fs::path> nets = DeployNets();
  EXPECT_GT(nets.size(), 20u);
  for (const fs::path& file : nets) {
    NetParameter param = testing::WithInputs(file, TEST);
    for (auto clear :
         {&NetParameter::clear_default_forward_type, &NetParameter::clear_default_backward_type,
          &NetParameter::clear_default_forward_math, &NetParameter::clear_default_backward_math}) {
      (param.*clear)();
    }
    const double flops = FlopsOfProducts(Net(param, Inference(FP32)));
    EXPECT_DOUBLE_EQ(FlopsOfProducts(Net(param, Inference(BF16))), flops) << file;
    EXPECT_DOUBLE_EQ(FlopsOfProducts(Net(param, Inference(FP16))), flops) << file;
  }
}

// A block of SqueezeNet, whose convolutions write into a concatenation in 16 and 8 bits.
constexpr char kFire[] = R"(
    name: 'fire' state { phase: TEST }
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 16 dim: 9 dim: 12 } } }
    layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a'
            convolution_param { num_output: 16 kernel_size: 1 weight_filler { type: 'msra' } } }
    layer { name: 'b' type: 'Convolution' bottom: 'x' top: 'b'
            convolution_param { num_output: 48 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } }
    layer { name: 'c' type: 'Concat' bottom: 'a' bottom: 'b' top: 'c' }
    layer { name: 'y' type: 'Convolution' bottom: 'c' top: 'y'
            convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: 'msra' } } })";

TEST(PlanFlopsTest, AreThoseOfFloatInNarrowTypes) {
  const testing::TemporaryFolder folder;
  testing::WriteRanges("fire", {{"x", {-1, 1}}, {"a", {-4, 4}}, {"b", {-5, 5}}, {"c", {-5, 5}}},
                       folder.path("ranges.json"));
  const NetParameter param = testing::ParseNet(kFire);
  const double flops = 2.0 * 2 * 9 * 12 * (16 * 16 + 16 * 9 * 48 + 64 * 8);
  for (const Precision precision : {FP32, BF16, FP16, INT8}) {
    NetOptions options = Inference(precision);
    if (precision == INT8) options.calibration = folder.path("ranges.json");
    EXPECT_DOUBLE_EQ(FlopsOfProducts(Net(param, options)), flops) << Precision_Name(precision);
  }
}

// The bytes that a convolution moves: its own channels, not those of the whole tensor.
TEST(PlanFlopsTest, BytesAreThoseOfThePart) {
  const Net net(testing::ParseNet(kFire), Inference(BF16));
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->op.As<ops::Fused>() == nullptr) continue;
    const double whole = static_cast<double>(node->outputs[0]->desc.bytes());
    const double inputs = static_cast<double>(node->inputs[0]->desc.bytes()) +
                          static_cast<double>(node->inputs[1]->desc.bytes());
    EXPECT_LT(node->BytesMoved(), inputs + whole);
    EXPECT_GT(node->BytesMoved(), inputs);
  }
}

}  // namespace
}  // namespace caffe
