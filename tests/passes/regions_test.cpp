// Regions that rows of the table of fusions form: what a kernel that breaks its word, overlapping
// patterns and a recomputation make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/fused_in_turn.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/fused_regions.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Pairs that no real kernel serves: the first window is 1x2.
constexpr int64_t kOddWidth = 2;
bool IsOddPair(const Op& op) {
  const auto& region = *op.As<ops::Fused>();
  return region.Is({ops::Conv::kName, ops::Conv::kName}) &&
         region.Get<ops::Conv>(0).geometry.kernel == std::vector<int64_t>{1, kOddWidth};
}

// Claims these pairs when the row asks, and refuses them afterwards.
KernelOrRefusal MakeLiar(const ops::Fused&, const KernelRequest&) {
  return Refusal{"it has changed its mind"};
}
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "test-liar", KernelRank::kBest,
                              MakeLiar,
                              {.signatures = {{DType::kFloat, DType::kFloat}},
                               .is_for = IsOddPair});

std::string LayerOfConv(const std::string& top, const std::string& bottom,
                        const std::string& options) {
  return StrCat("layer { name: '", top, "' type: 'Convolution' bottom: '", bottom, "' top: '", top,
                "' convolution_param { ", options,
                " weight_filler { type: 'msra' } bias_filler { type: 'uniform' } } } ");
}

std::unique_ptr<Net> MakeNet(const std::string& layers, Precision precision = FP32,
                             std::vector<std::string> disabled = {}) {
  NetParameter param = testing::ParseNet(
      "name: 'r' layer { name: 'x' type: 'Input' top: 'x' "
      "input_param { shape { dim: 2 dim: 16 dim: 9 dim: 12 } } } " +
      layers);
  param.mutable_state()->set_phase(TEST);
  NetOptions options{.keep_all = false, .with_backward = false, .seed = 5, .precision = precision};
  options.disabled_passes = std::move(disabled);
  auto net = std::make_unique<Net>(param, options);
  Blob& x = *net->input_blobs()[0];
  for (int64_t i = 0; i < x.count(); ++i)
    x.mutable_cpu_data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  return net;
}

TEST(RegionsTest, RunInTurnWhereTheKernelThatClaimedThemRefuses) {
  const std::string layers = LayerOfConv("a", "x", "num_output: 16 kernel_h: 1 kernel_w: 2") +
                             LayerOfConv("y", "a", "num_output: 4 kernel_size: 3 stride: 2");
  const auto on = MakeNet(layers), off = MakeNet(layers, FP32, {"pair-convolutions"});
  ASSERT_EQ(testing::CountOps(*on, "Conv+Conv"), 1);
  for (const PlanStep& step : PlanSteps(*on)) {
    if (step.op.rfind("Fused", 0) != 0) continue;
    EXPECT_EQ(step.kernel, "fused-in-turn");
    EXPECT_THAT(step.refusals, Contains("test-liar: it has changed its mind"));
  }
  EXPECT_EQ(testing::Output(*on), testing::Output(*off));
}

TEST(RegionsTest, PlansSayWhichRowWasAppliedAndWhoRefused) {
  const std::string layers = LayerOfConv("a", "x", "num_output: 16 kernel_h: 1 kernel_w: 2") +
                             LayerOfConv("y", "a", "num_output: 4 kernel_size: 3 stride: 2");
  const auto fusion = [](const Net& net, const std::string& row) {
    const std::vector<PlanFusion> fusions = PlanFusions(net);
    return *std::ranges::find(fusions, row, &PlanFusion::row);
  };
  const auto in_float = MakeNet(layers), in_double = MakeNet(layers, FP64);
  EXPECT_EQ(fusion(*in_float, "pair-convolutions").fired, 1);
  EXPECT_EQ(fusion(*in_double, "pair-convolutions").fired, 0);
  EXPECT_THAT(fusion(*in_double, "pair-convolutions").refusals,
              Contains(HasSubstr("test-liar: does not take double")));
}

// The second convolution of a pair also belongs to a concatenation, which may copy it.
TEST(RegionsTest, OneNodeIsInOneRegion) {
  const std::string layers =
      LayerOfConv("a", "x", "num_output: 16 kernel_h: 1 kernel_w: 2") +
      LayerOfConv("b", "a", "num_output: 16 kernel_size: 1") +
      LayerOfConv("c", "x", "num_output: 16 kernel_h: 1 kernel_w: 2") +
      "layer { name: 'd' type: 'Concat' bottom: 'b' bottom: 'c' top: 'd' } " +
      LayerOfConv("y", "d", "num_output: 4 kernel_size: 1");
  const auto on = MakeNet(layers), off = MakeNet(layers, FP32, {"fuse-images"});
  EXPECT_EQ(testing::CountOps(*on, "Conv+Conv"), 1);
  EXPECT_EQ(testing::CountOps(*off, "Conv+Conv"), 0);
  EXPECT_LT(testing::MostDifferent(testing::Output(*on), testing::Output(*off)), 1e-6F);
}

// The gradient of a Split with one top is a sum of one gradient, which a convolution computes.
TEST(RegionsTest, SumsOfOneGradientTrain) {
  NetParameter param = testing::ParseNet(
      "name: 's' layer { name: 'x' type: 'DummyData' top: 'x' top: 'label' dummy_data_param { "
      "shape { dim: 2 dim: 3 dim: 6 dim: 5 } shape { dim: 2 } data_filler { type: 'gaussian' } "
      "data_filler { type: 'constant' value: 1 } } } " +
      LayerOfConv("a", "x", "num_output: 4 kernel_size: 1") +
      "layer { name: 's' type: 'Split' bottom: 'a' top: 's' } " +
      LayerOfConv("b", "s", "num_output: 3 kernel_h: 6 kernel_w: 5") +
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'b' bottom: 'label' top: 'loss' }");
  param.mutable_state()->set_phase(TRAIN);
  for (const Precision precision : {FP32, FP64, BF16}) {
    Net net(param, {.keep_all = false, .seed = 1, .precision = precision});
    EXPECT_GT(net.ForwardBackward(), 0) << Precision_Name(precision);
  }
}

class InTurnTest : public ::testing::Test {
 protected:
  static KernelOrRefusal Ask(const ops::Fused& region, const std::vector<OperandDesc>& inputs,
                             const std::vector<OperandDesc>& outputs) {
    const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCpu);
    const Op op(region);
    return ops::MakeInTurn(region, {op, inputs, outputs, *device});
  }
  static OperandDesc Operand(std::vector<int64_t> dims, DType dtype = DType::kFloat) {
    OperandDesc desc;
    desc.shape = Shape(std::move(dims));
    desc.dtype = dtype;
    return desc;
  }
};

TEST_F(InTurnTest, AMemberWithoutAKernelIsNamed) {
  const ops::Fused region = testing::StatisticsOf({{{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}});
  const auto number = DType::kUInt8;
  const KernelOrRefusal answer = Ask(region, {Operand({2, 4, 3, 3}, number), Operand({8, 4, 1, 1})},
                                     {Operand({2, 8, 3, 3}, number), Operand({8}), Operand({8})});
  const Refusal* refusal = std::get_if<Refusal>(&answer);
  ASSERT_NE(refusal, nullptr);
  EXPECT_THAT(refusal->reason, HasSubstr("the member ChannelStatistics"));
}

// Otherwise each run would convert them.
TEST_F(InTurnTest, ThePlanMayPackTheWeightsOfAMember) {
  const ops::ConvGeometry geometry = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1};
  std::vector<OperandDesc> inputs = {Operand({2, 16, 9, 9}), Operand({16, 16, 3, 3})};
  for (OperandDesc& operand : inputs) operand.may_be_packed = true;
  inputs[0].layout = Layout::kChannelsLast;
  std::vector<OperandDesc> outputs = {inputs[0], Operand({16}), Operand({16})};
  const Kernel region = std::get<Kernel>(Ask(testing::StatisticsOf({geometry}), inputs, outputs));
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCpu);
  const Op conv(ops::Conv{geometry});
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(DeviceKind::kCpu, conv.type())) {
    if (!candidate.Serves({DType::kFloat, DType::kFloat})) continue;
    const KernelOrRefusal answer =
        candidate.factory({conv, inputs, std::span(outputs).first(1), *device});
    const Kernel* alone = std::get_if<Kernel>(&answer);
    if (alone == nullptr) continue;
    ASSERT_EQ(region.packed_weights.has_value(), alone->packed_weights.has_value());
    if (region.packed_weights) {
      EXPECT_EQ(region.packed_weights->operand, ops::Conv::kW);
    }
    return;
  }
}

// A recomputation of forward must not update the running statistics again.
TEST_F(InTurnTest, AMemberWhoseResultsAreAbsentDoesNotRun) {
  const ops::Fused region =
      testing::StatisticsOf({{{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}}, ops::UpdateRunningStatistics{});
  OperandDesc absent;
  absent.present = false;
  const std::vector<OperandDesc> inputs = {Operand({1, 1, 1, 2}), Operand({1, 1, 1, 1})};
  const std::vector<OperandDesc> outputs = {
      Operand({1, 1, 1, 2}), Operand({1}), Operand({1}), absent, absent, absent};
  const Kernel kernel = std::get<Kernel>(Ask(region, inputs, outputs));
  float x[] = {1, 3}, w = 2, y[2], mean = 0, variance = 0;
  std::vector<char> workspace(kernel.workspace_bytes);
  const auto view = [](const OperandDesc& desc, void* data) {
    TensorView one;
    static_cast<TensorDesc&>(one) = desc;
    one.data = data;
    return one;
  };
  const TensorView in[] = {view(inputs[0], x), view(inputs[1], &w)};
  const TensorView out[] = {
      view(outputs[0], y), view(outputs[1], &mean), view(outputs[2], &variance), {}, {}, {}};
  KernelContext ctx;
  ctx.inputs = in;
  ctx.outputs = out;
  ctx.workspace = workspace.data();
  kernel.run(ctx);
  EXPECT_EQ(y[1], 6);
  EXPECT_EQ(mean, 4);
  EXPECT_EQ(variance, 4);
}

}  // namespace
}  // namespace caffe
