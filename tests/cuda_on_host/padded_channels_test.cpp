// Convolutions on channels of zeros behind those that there are compute the same.
#include "caffe/cuda/padded_channels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/cuda/noise.hpp"
#include "caffe/ops/conv.hpp"

namespace caffe::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

OperandDesc Operand(std::vector<int64_t> dims, DType type, Layout layout = Layout::kPlain) {
  OperandDesc operand;
  operand.shape = Shape(std::move(dims));
  operand.dtype = type;
  operand.layout = layout;
  return operand;
}

const ops::ConvGeometry kGeometry{{3, 5}, {2, 1}, {1, 2}, {1, 1}, 1};

// A first layer's operands, of a convolution or of its filter's gradient.
struct FirstLayer {
  DType type;
  int64_t channels = 3;
  Layout filter_layout = Layout::kPlain;

  std::vector<OperandDesc> Images() const {
    return {Operand({2, channels, 9, 7}, type, Layout::kChannelsLast),
            Operand({2, 6, 5, 7}, type, Layout::kChannelsLast)};
  }
  OperandDesc Filter(DType filter_type, Layout layout = Layout::kPlain) const {
    return Operand({6, channels, 3, 5}, filter_type, layout);
  }
  OperandDesc Bias() const { return Operand({6}, DType::kFloat); }

  // Convolution: (x, w, b) -> (y). Gradient: (x, dy) -> (dw, db).
  std::vector<OperandDesc> Inputs(bool is_gradient) const {
    return is_gradient ? Images() : std::vector{Images()[0], Filter(type, filter_layout), Bias()};
  }
  std::vector<OperandDesc> Outputs(bool is_gradient) const {
    return is_gradient ? std::vector{Filter(DType::kFloat), Bias()} : std::vector{Images()[1]};
  }
};

Op OpOf(bool is_gradient) {
  if (is_gradient) return ops::ConvGradWeights{kGeometry};
  return ops::Conv{kGeometry, {}, {{.kind = ops::Pointwise::Kind::kRelu}}};
}

KernelOrRefusal Reference(const KernelRequest& request) {
  KernelOrRefusal answer = KernelRegistry::Get()
                               .Candidates(DeviceKind::kCuda, request.op.type())
                               .back()
                               .factory(request);
  if (Kernel* kernel = std::get_if<Kernel>(&answer)) kernel->algorithms = {"eng1"};
  return answer;
}

std::vector<double> ResultsOf(const Kernel& kernel, const KernelRequest& request,
                              OperandSet accumulated) {
  Device& device = request.device;
  device.MakeCurrent();
  std::vector<std::shared_ptr<void>> memory;
  std::vector<TensorView> views[2];
  for (const int k : {0, 1}) {
    for (const OperandDesc& desc : k == 0 ? request.inputs : request.outputs) {
      static_cast<TensorDesc&>(views[k].emplace_back()) = desc;
      memory.push_back(device.Allocate(desc.bytes()));
      views[k].back().data = memory.back().get();
      FillWithNoise(device, desc.dtype, memory.back().get(), desc.bytes(), memory.size());
    }
  }
  memory.push_back(device.Allocate(kernel.workspace_bytes));
  const std::vector<char> noise(kernel.workspace_bytes, '\x3c');
  device.CopyFromHost(memory.back().get(), noise.data(), noise.size());
  KernelContext ctx;
  ctx.inputs = views[0];
  ctx.outputs = views[1];
  ctx.workspace = memory.back().get();
  ctx.stream = &device.compute_stream();
  ctx.accumulated = accumulated;
  kernel.run(ctx);
  std::vector<double> results;
  for (const TensorView& view : views[1]) {
    std::vector<char> bytes(view.bytes());
    device.CopyToHost(bytes.data(), view.data, bytes.size());
    VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
      const T* values = reinterpret_cast<const T*>(bytes.data());
      for (int64_t i = 0; i < view.count(); ++i) results.push_back(static_cast<double>(values[i]));
    });
  }
  return results;
}

class CudaPaddedChannelsTest : public ::testing::TestWithParam<DType> {};

TEST_P(CudaPaddedChannelsTest, ComputeTheSame) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  for (const bool is_gradient : {false, true}) {
    const FirstLayer layer{GetParam()};
    const auto inputs = layer.Inputs(is_gradient), outputs = layer.Outputs(is_gradient);
    const Op op = OpOf(is_gradient);
    const KernelRequest request{op, inputs, outputs, *device};
    const Kernel plain = std::get<Kernel>(Reference(request));
    EXPECT_THAT(PaddedChannelCounts(request), ElementsAre(4, 8));
    for (const int64_t channels : {4, 8}) {
      const Kernel padded = std::get<Kernel>(OnPaddedChannels(request, channels, Reference));
      EXPECT_EQ(padded.algorithms[0], StrCat("eng1 on ", channels, " channels"));
      std::vector<OperandSet> modes = {{}};
      if (is_gradient) modes = {{}, {0}, {1}, {0, 1}};
      for (const OperandSet& accumulated : modes) {
        const std::vector<double> want = ResultsOf(plain, request, accumulated),
                                  got = ResultsOf(padded, request, accumulated);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(got[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << channels << " " << i;
      }
    }
  }
}

TEST_P(CudaPaddedChannelsTest, TakeFiltersThatLieChannelsLast) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  const FirstLayer layer{GetParam(), 3, Layout::kChannelsLast};
  const auto inputs = layer.Inputs(false), outputs = layer.Outputs(false);
  const Op op = OpOf(false);
  const KernelRequest request{op, inputs, outputs, *device};
  const Kernel plain = std::get<Kernel>(Reference(request));
  for (const int64_t channels : {4, 8}) {
    const Kernel padded = std::get<Kernel>(OnPaddedChannels(request, channels, Reference));
    const std::vector<double> want = ResultsOf(plain, request, {}),
                              got = ResultsOf(padded, request, {});
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << channels << " " << i;
  }
}

TEST_P(CudaPaddedChannelsTest, AreForFewChannelsThatLieLast) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  const auto counts = [&](int64_t channels, Layout layout, int64_t group) {
    const FirstLayer layer{GetParam(), channels};
    auto inputs = layer.Inputs(false);
    inputs[0].layout = layout;
    const auto outputs = layer.Outputs(false);
    ops::Conv conv{kGeometry};
    conv.geometry.group = group;
    return PaddedChannelCounts({Op(conv), inputs, outputs, *device});
  };
  EXPECT_THAT(counts(1, Layout::kChannelsLast, 1), ElementsAre(4, 8));
  EXPECT_THAT(counts(6, Layout::kChannelsLast, 1), ElementsAre(8));
  EXPECT_THAT(counts(8, Layout::kChannelsLast, 1), IsEmpty());
  EXPECT_THAT(counts(3, Layout::kPlain, 1), IsEmpty());
  EXPECT_THAT(counts(6, Layout::kChannelsLast, 2), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Types, CudaPaddedChannelsTest,
                         ::testing::Values(DType::kFloat, DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace caffe::cuda
