// Depthwise convolutions and their gradients by our own kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "caffe/common.hpp"
#include "caffe/cuda/noise.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/tolerance.hpp"

namespace caffe {
namespace {

using ops::Pointwise;
using testing::CaseOperand;
using testing::Elements;
using testing::OpCase;
using testing::T;

struct Depthwise {
  std::vector<int64_t> x;
  ops::ConvGeometry geometry;

  Depthwise(std::vector<int64_t> x, int64_t kernel, int64_t stride, int64_t pad)
      : Depthwise(x, {{kernel, kernel}, {stride, stride}, {pad, pad}, {1, 1}, x[1]}) {}
  Depthwise(std::vector<int64_t> x, ops::ConvGeometry geometry)
      : x(std::move(x)), geometry(std::move(geometry)) {}

  std::vector<int64_t> y() const {
    return {x[0], x[1], geometry.OutputSize(0, x[2]), geometry.OutputSize(1, x[3])};
  }
  // The convolution and its two gradients.
  std::vector<OpCase> Cases() const {
    const CaseOperand image = T(x), result = T(y()), bias = T({x[1]}).Wide(),
                      w = T({x[1], 1, geometry.kernel[0], geometry.kernel[1]});
    using Kind = Pointwise::Kind;
    return {{"conv-depthwise",
             ops::Conv{geometry, {}, {{.kind = Kind::kRelu, .a = 0.25F}}},
             {image, w, bias},
             {result}},
            {"conv-grad-data-depthwise",
             ops::ConvGradData{
                 geometry,
                 {},
                 {{.kind = Kind::kAdd, .operand = 2}, {.kind = Kind::kReluGrad, .operand = 3}}},
             {result, w, image, image},
             {image}},
            {"conv-grad-weights-depthwise",
             ops::ConvGradWeights{geometry},
             {image, result},
             {w.Wide(), bias},
             {0, 1}}};
  }
};

const KernelCandidate& CandidateOf(const OpCase& test) {
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCuda, test.op.type());
  const auto found = std::ranges::find(candidates, test.name, &KernelCandidate::name);
  if (found == candidates.end()) throw InternalError(test.name + " is not registered");
  return *found;
}

std::vector<Elements> ResultsOf(const OpCase& test, DType type, bool accumulates = false) {
  std::string refusal;
  const auto result = testing::RunCase(test, *testing::DeviceOrNull(DeviceKind::kCuda),
                                       CandidateOf(test), type, Layout::kChannelsLast, accumulates,
                                       testing::MakeData(test, type), 1, &refusal);
  if (!result) throw InternalError(test.name + ": " + refusal);
  return result->outputs;
}

void ExpectNear(const Elements& got, const Elements& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  double squares = 0;
  for (const double value : want) squares += value * value;
  const double size = std::sqrt(squares / static_cast<double>(want.size()));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * (std::abs(want[i]) + size)) << i;
}

void ExpectAsReference(const OpCase& test, DType type, const std::vector<Elements>& results,
                       bool accumulates = false) {
  const auto want = testing::RunReference(test, accumulates, testing::MakeData(test, type));
  const double tolerance = testing::RelativeTolerance(testing::CoarsestType(test, type));
  for (size_t i = 0; i < want.size(); ++i) {
    SCOPED_TRACE(StrCat(test.name, " output ", i));
    ExpectNear(results[i], want[i], tolerance);
  }
}

class CudaDepthwiseTest : public ::testing::TestWithParam<DType> {};

// cuDNN before 9.24 had wrong results then.
TEST_P(CudaDepthwiseTest, SizesInTurnDoNotDisturbEachOther) {
  const std::vector<Depthwise> sizes = {{{2, 24, 14, 14}, 3, 1, 1}, {{2, 24, 7, 9}, 3, 1, 1},
                                        {{3, 8, 15, 12}, 3, 2, 1},  {{1, 72, 9, 9}, 5, 1, 2},
                                        {{2, 40, 12, 9}, 5, 2, 2},  {{1, 576, 4, 3}, 3, 1, 1}};
  std::vector<std::vector<std::vector<Elements>>> first;
  for (const Depthwise& size : sizes) {
    first.emplace_back();
    for (const OpCase& test : size.Cases()) {
      first.back().push_back(ResultsOf(test, GetParam()));
      ExpectAsReference(test, GetParam(), first.back().back());
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto cases = sizes[i].Cases();
    for (size_t k = 0; k < cases.size(); ++k)
      EXPECT_EQ(ResultsOf(cases[k], GetParam()), first[i][k]) << cases[k].name << " of size " << i;
  }
}

TEST_P(CudaDepthwiseTest, ComputesAnyGeometry) {
  std::mt19937 random(static_cast<unsigned>(GetParam()) + 7);
  const auto one_of = [&](std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  for (int i = 0; i < 60; ++i) {
    ops::ConvGeometry g;
    const bool is_square = i % 3 != 0;
    for (int axis = 0; axis < 2; ++axis) {
      g.kernel.push_back(is_square ? 3 + i % 2 * 2 : one_of({1, 2, 3, 4, 5, 7}));
      g.stride.push_back(is_square ? 1 + i / 4 % 2 : one_of({1, 2, 3}));
      g.dilation.push_back(is_square ? 1 : one_of({1, 1, 2}));
      g.pad.push_back(one_of({0, 1, 2, 3, 6}));
    }
    const std::vector<int64_t> x = {one_of({1, 2, 3}), 4 * one_of({1, 2, 3, 6, 11, 36}),
                                    one_of({3, 4, 7, 8, 13}), one_of({2, 5, 7, 12, 31})};
    g.group = x[1];
    if (x[2] + 2 * g.pad[0] < g.Span(0) || x[3] + 2 * g.pad[1] < g.Span(1)) continue;
    SCOPED_TRACE(StrCat(g.ToString(), " of ", Shape(x).ToString()));
    for (const OpCase& test : Depthwise(x, g).Cases()) {
      const bool accumulates = i % 2 == 0 && test.CanAccumulate();
      ExpectAsReference(test, GetParam(), ResultsOf(test, GetParam(), accumulates), accumulates);
    }
  }
}

// Results of a kernel whose operands begin `offset` elements after aligned memory.
std::vector<char> BytesAt(const OpCase& test, DType type, size_t offset) {
  Device& device = *testing::DeviceOrNull(DeviceKind::kCuda);
  device.MakeCurrent();
  std::vector<OperandDesc> descs[2];
  for (const CaseOperand& one : test.inputs) descs[0].emplace_back().shape = one.shape;
  for (const CaseOperand& one : test.outputs) descs[1].emplace_back().shape = one.shape;
  for (auto& operands : descs) {
    for (OperandDesc& desc : operands) {
      desc.dtype = type;
      if (desc.shape.num_axes() == 4 && desc.shape[1] > 1) desc.layout = Layout::kChannelsLast;
    }
  }
  std::vector<std::shared_ptr<void>> memory;
  std::vector<TensorView> views[2];
  const size_t skipped = offset * SizeOf(type);
  for (const int k : {0, 1}) {
    for (const OperandDesc& desc : descs[k]) {
      static_cast<TensorDesc&>(views[k].emplace_back()) = desc;
      memory.push_back(device.Allocate(desc.bytes() + skipped));
      views[k].back().data = static_cast<char*>(memory.back().get()) + skipped;
      cuda::FillWithNoise(device, type, views[k].back().data, desc.bytes(), memory.size());
    }
  }
  const KernelRequest request{test.op, descs[0], descs[1], device};
  const Kernel kernel = std::get<Kernel>(CandidateOf(test).factory(request));
  memory.push_back(device.Allocate(kernel.workspace_bytes));
  KernelContext ctx;
  ctx.inputs = views[0];
  ctx.outputs = views[1];
  ctx.workspace = memory.back().get();
  ctx.stream = &device.compute_stream();
  kernel.run(ctx);
  std::vector<char> bytes(views[1][0].bytes());
  device.CopyToHost(bytes.data(), views[1][0].data, bytes.size());
  return bytes;
}

TEST_P(CudaDepthwiseTest, OperandsMayBeginAnywhere) {
  for (const OpCase& test : Depthwise({2, 12, 6, 5}, 3, 1, 1).Cases()) {
    const std::vector<char> aligned = BytesAt(test, GetParam(), 0),
                            shifted = BytesAt(test, GetParam(), 1);
    VisitFloat(GetParam(), [&]<typename Type>(TypeTag<Type>) {
      const auto* one = reinterpret_cast<const Type*>(aligned.data());
      const auto* other = reinterpret_cast<const Type*>(shifted.data());
      const auto count = aligned.size() / sizeof(Type);
      ExpectNear(Elements(other, other + count), Elements(one, one + count),
                 testing::RelativeTolerance(GetParam()));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaDepthwiseTest,
                         ::testing::Values(DType::kFloat, DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(Name(info.param)); });

std::string RefusalOf(const Depthwise& size, Layout layout = Layout::kChannelsLast,
                      int64_t outputs = 0) {
  std::vector<OperandDesc> inputs(2), result(1);
  const int64_t channels = outputs > 0 ? outputs : size.x[1];
  inputs[0].shape = Shape(size.x);
  inputs[1].shape = Shape({channels, size.x[1] / size.geometry.group, size.geometry.kernel[0],
                           size.geometry.kernel[1]});
  result[0].shape = Shape(size.y()).With(1, channels);
  inputs[0].layout = result[0].layout = layout;
  const Op op = ops::Conv{size.geometry};
  const OpCase test = size.Cases()[0];
  const auto answer =
      CandidateOf(test).factory({op, inputs, result, *testing::DeviceOrNull(DeviceKind::kCuda)});
  const auto* const refused = std::get_if<Refusal>(&answer);
  return refused == nullptr ? "" : refused->reason;
}

TEST(CudaDepthwiseRefusalTest, TellsWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf({{2, 8, 7, 7}, 3, 1, 1}), "");
  EXPECT_EQ(RefusalOf({{2, 8, 7, 7}, 3, 1, 1}, Layout::kPlain), "only where channels lie last");
  EXPECT_EQ(RefusalOf({{2, 8, 7, 7}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 4}}),
            "channels are not groups of one");
  EXPECT_EQ(RefusalOf({{2, 8, 7, 7}, 3, 1, 1}, Layout::kChannelsLast, 16),
            "a channel has several filters");
  EXPECT_EQ(RefusalOf({{2, 6, 7, 7}, 3, 1, 1}), "channels do not lie in whole packs of four");
  EXPECT_EQ(RefusalOf({{1, 8, 80, 80}, 65, 1, 1}), "too many taps");
}

TEST(CudaDepthwisePlanTest, ANetUsesThem) {
  NetParameter param;
  ParseTextProto(
      "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { "
      "shape { dim: 2 dim: 3 dim: 9 dim: 9 } shape { dim: 2 } data_filler { type: 'gaussian' } "
      "data_filler { type: 'constant' value: 1 } } } "
      "layer { name: 'stem' type: 'Convolution' bottom: 'data' top: 'stem' convolution_param { "
      "num_output: 16 kernel_size: 1 weight_filler { type: 'msra' } } } "
      "layer { name: 'depthwise' type: 'Convolution' bottom: 'stem' top: 'depthwise' "
      "convolution_param { num_output: 16 group: 16 kernel_size: 3 stride: 2 pad: 1 "
      "weight_filler { type: 'msra' } } } "
      "layer { name: 'relu' type: 'ReLU' bottom: 'depthwise' top: 'depthwise' } "
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'depthwise' top: 'ip' inner_product_param { "
      "num_output: 3 weight_filler { type: 'xavier' } } } layer { name: 'loss' type: "
      "'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }",
      "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  Caffe::set_mode(Caffe::GPU);
  for (const Precision precision : {FP32, FP16, BF16}) {
    const Net net(param, {.keep_all = false, .seed = 1, .precision = precision});
    std::vector<std::string> kernels;
    for (const PlanStep& step : PlanSteps(net)) {
      if (step.kernel.ends_with("-depthwise")) kernels.push_back(step.kernel);
    }
    EXPECT_THAT(kernels,
                ::testing::UnorderedElementsAre("conv-depthwise", "conv-grad-data-depthwise",
                                                "conv-grad-weights-depthwise"))
        << Precision_Name(precision);
  }
  Caffe::set_mode(Caffe::CPU);
}

}  // namespace
}  // namespace caffe
