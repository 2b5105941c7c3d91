// The steps around cuDNN's products of 8-bit numbers: the step after its sums, and the check of an
// engine with packed weights.
#include "caffe/cuda/int8_products.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/cuda/engine_check.hpp"
#include "caffe/device/device_fault.hpp"
#include "tests/support/temporary_folder.hpp"
#include "work_queue.hpp"

namespace caffe::cuda {
namespace {

using ProductKind = ops::Pointwise::Kind;

OperandDesc ScaledOperand(Shape shape, DType type, float scale = 1,
                          Layout layout = Layout::kPlain) {
  OperandDesc operand;
  operand.shape = std::move(shape);
  operand.dtype = type;
  operand.scale = scale;
  operand.layout = layout;
  return operand;
}

class CudaInt8ProductsTest : public ::testing::Test {
 protected:
  template <typename T>
  TensorView Send(const OperandDesc& desc, const std::vector<T>& values) {
    memory_.push_back(device_->Allocate(values.size() * sizeof(T)));
    device_->CopyFromHost(memory_.back().get(), values.data(), values.size() * sizeof(T));
    TensorView view;
    static_cast<TensorDesc&>(view) = desc;
    view.data = memory_.back().get();
    return view;
  }

  KernelRequest RequestFor(const Op& op) const { return {op, inputs_, outputs_, *device_}; }
  KernelOrRefusal Make(const Op& op, std::string_view name) const {
    for (const KernelCandidate& candidate :
         KernelRegistry::Get().Candidates(DeviceKind::kCuda, op.type())) {
      if (candidate.name == name) return candidate.factory(RequestFor(op));
    }
    throw InternalError("no such candidate");
  }

  const std::shared_ptr<Device> device_ = MakeDevice(DeviceKind::kCuda);
  std::vector<std::shared_ptr<void>> memory_;
  // The operands of a convolution in 8 groups.
  const std::vector<OperandDesc> inputs_ = [] {
    std::vector<OperandDesc> inputs = {
        ScaledOperand({2, 8, 6, 5}, DType::kInt8, 0.02F, Layout::kChannelsLast),
        ScaledOperand({8, 1, 3, 3}, DType::kFloat), ScaledOperand({8}, DType::kFloat)};
    for (OperandDesc& input : inputs) input.may_be_packed = true;
    return inputs;
  }();
  const std::vector<OperandDesc> outputs_ = {
      ScaledOperand({2, 8, 6, 5}, DType::kInt8, 0.05F, Layout::kChannelsLast)};
};

// Processes 16, 4 and one element at a time.
TEST_F(CudaInt8ProductsTest, SumsBecomeNumbersInAStepOfTheirOwn) {
  constexpr int64_t kRows = 6;
  const ops::Epilogue epilogue = {
      {ProductKind::kAdd, 0, 0, 3}, {ProductKind::kRelu, 0.25F}, {ProductKind::kClip, -1, 2.5F}};
  for (const int64_t channels : {32, 12, 5}) {
    const Shape shape{kRows, channels};
    std::vector<float> sums, factors, bias;
    std::vector<int8_t> added;
    for (int64_t i = 0; i < channels; ++i) {
      factors.push_back(1e-3F * static_cast<float>(i + 1));
      bias.push_back(0.125F * static_cast<float>(i % 7) - 0.3F);
    }
    for (int64_t i = 0; i < kRows * channels; ++i) {
      sums.push_back(static_cast<float>((i * 7919) % 2001 - 1000));
      added.push_back(static_cast<int8_t>((i * 31) % 256 - 128));
    }
    const TensorView read[] = {{},
                               {},
                               Send(ScaledOperand({channels}, DType::kFloat), bias),
                               Send(ScaledOperand(shape, DType::kInt8, 0.01F), added)};
    const TensorView y =
        Send(ScaledOperand(shape, DType::kInt8, 0.02F), std::vector<int8_t>(sums.size(), 77));
    KernelContext context;
    context.inputs = read;
    context.outputs = {&y, 1};
    context.stream = &device_->compute_stream();
    const TensorView on_device[] = {Send(ScaledOperand({channels}, DType::kFloat), factors),
                                    Send(ScaledOperand(shape, DType::kFloat), sums)};
    FinishSums(context, epilogue, on_device[0].as<const float>(), channels,
               on_device[1].as<const float>());
    context.stream->Synchronize();
    std::vector<int8_t> got(sums.size());
    device_->CopyToHost(got.data(), y.data, got.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t c = i % static_cast<size_t>(channels);
      double value = static_cast<double>(sums[i]) * factors[c] + bias[c] + 0.01 * added[i];
      value = std::clamp(value > 0 ? value : 0.25 * value, -1.0, 2.5) / 0.02;
      EXPECT_NEAR(got[i], value, 0.5 + 1e-3) << channels << " channels, element " << i;
    }
  }
}

// The weights are packed for each of the two kernels, and plain in between.
TEST_F(CudaInt8ProductsTest, AnEngineWithPackedWeightsIsChecked) {
  const testing::TemporaryFolder folder;
  const Op op(ops::Conv{{{3, 3}, {1, 1}, {1, 1}, {1, 1}, 8}});
  for (const bool is_wrong : {false, true}) {
    // A kernel that uses another order of the weights.
    Kernel fused = std::get<Kernel>(Make(op, "conv-int8-channels"));
    ASSERT_TRUE(fused.packed_weights.has_value());
    if (is_wrong) {
      fused.packed_weights->convert =
          std::get<Kernel>(Make(op, "conv-int8-direct")).packed_weights->convert;
    }
    AlgorithmCache cache(folder.path(StrCat(is_wrong, ".tsv")));
    const KernelOrRefusal taken =
        CheckedKernel(RequestFor(op), {cache, "H200|cudnn|check", false}, std::move(fused),
                      [&] { return Make(op, "conv-int8-direct"); });
    EXPECT_EQ(std::get<Kernel>(taken).name, is_wrong ? "conv-int8-direct" : "conv-int8-channels");
  }
}

// This also holds while the weights are packed.
TEST_F(CudaInt8ProductsTest, ALostDeviceEndsTheCheck) {
  const testing::TemporaryFolder folder;
  const Op op(ops::Conv{{{3, 3}, {1, 1}, {1, 1}, {1, 1}, 8}});
  for (int calls = 0; calls < 12; ++calls) {
    Kernel fused = std::get<Kernel>(Make(op, "conv-int8-channels"));
    fused.run = [run = fused.run, calls](const KernelContext& ctx) {
      cuda_on_host::LoseDeviceAfter(0, calls);
      run(ctx);
    };
    AlgorithmCache cache(folder.path(StrCat(calls, ".tsv")));
    EXPECT_THROW(CheckedKernel(RequestFor(op), {cache, "H200|cudnn|check", false}, fused,
                               [&] { return Make(op, "conv-int8-direct"); }),
                 DeviceFault);
    EXPECT_TRUE(cuda_on_host::EndTrouble());
  }
}

}  // namespace
}  // namespace caffe::cuda
