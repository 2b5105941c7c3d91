// cuDNN's plans for chips that are only described: how many are built, and which are proposed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "caffe/cuda/cudnn_error.hpp"
#include "caffe/cuda/cudnn_graph.hpp"
#include "caffe/cuda/nvidia_libraries.hpp"
#include "caffe/error.hpp"
#include "caffe/gpu_libraries.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/plan_ahead.hpp"
#include "tests/support/fused_regions.hpp"

namespace caffe::cuda {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

OperandDesc Operand(Shape shape, Layout layout = Layout::kPlain) {
  OperandDesc operand;
  operand.shape = std::move(shape);
  operand.dtype = DType::kBFloat16;
  operand.layout = layout;
  return operand;
}

// A convolution of 64 to 64 channels as it is requested from its factory.
struct AskedConvolution {
  int64_t kernel = 3;
  bool has_bias_and_relu = false;

  ops::Conv Convolution() const {
    ops::Conv op;
    op.geometry = {{kernel, kernel}, {1, 1}, {kernel / 2, kernel / 2}, {1, 1}, 1};
    if (has_bias_and_relu) op.epilogue = {{.kind = ops::Pointwise::Kind::kRelu}};
    return op;
  }
  template <typename Answer>
  KernelOrRefusal Ask(Device& device, const Answer& answer) const {
    const Op op(Convolution());
    std::vector<OperandDesc> inputs = {Operand({32, 64, 28, 28}, Layout::kChannelsLast),
                                       Operand({64, 64, kernel, kernel}), Operand({64})};
    inputs[2].present = has_bias_and_relu;
    inputs[2].dtype = DType::kFloat;  // like biases with 16-bit weights
    const std::vector<OperandDesc> outputs = {Operand({32, 64, 28, 28}, Layout::kChannelsLast)};
    return answer(KernelRequest{op, inputs, outputs, device});
  }
};

class CudnnProblemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = DescribeDevice(DeviceKind::kCuda, "H200");
    for (const KernelCandidate& candidate :
         KernelRegistry::Get().Candidates(DeviceKind::kCuda, typeid(ops::Conv))) {
      if (candidate.name == "conv-cudnn") candidate_ = &candidate;
    }
    ASSERT_NE(candidate_, nullptr);
  }
  Kernel Plan(const AskedConvolution& asked) const {
    KernelOrRefusal answer = asked.Ask(*device_, candidate_->factory);
    if (const Refusal* refusal = std::get_if<Refusal>(&answer)) throw Unsupported(refusal->reason);
    return std::get<Kernel>(std::move(answer));
  }

  std::shared_ptr<Device> device_;
  const KernelCandidate* candidate_ = nullptr;
};

TEST_F(CudnnProblemTest, AChipThatIsNotThereHasWhatTheNewestCudnnRequires) {
  const ChipProperties& chip = static_cast<const CudaDevice&>(*device_).chip();
  EXPECT_THAT(SerializedForCudnn(chip), HasSubstr("\"memoryBusWidth\":6144,"));
}

TEST_F(CudnnProblemTest, EqualProblemsAreBuiltOnce) {
  const int64_t before = GpuPlansSoFar().built;
  const Kernel first = Plan({.kernel = 3});
  EXPECT_EQ(GpuPlansSoFar().built, before + 1);
  const Kernel second = Plan({.kernel = 3});
  EXPECT_EQ(GpuPlansSoFar().built, before + 1);
  EXPECT_EQ(second.algorithms, first.algorithms);
  EXPECT_EQ(second.workspace_bytes, first.workspace_bytes);
  const Kernel other = Plan({.kernel = 5});
  EXPECT_EQ(GpuPlansSoFar().built, before + 2);
}

// Several threads do this before the plan is requested.
TEST_F(CudnnProblemTest, WhatWasBuiltAheadIsNotBuiltAgain) {
  const KernelFactory* const ahead =
      AheadFactories::Get().Find(DeviceKind::kCuda, typeid(ops::Conv), *candidate_);
  ASSERT_NE(ahead, nullptr);
  const int64_t before = GpuPlansSoFar().built;
  std::vector<KernelOrRefusal> answers(4);
  std::vector<std::thread> threads;
  for (KernelOrRefusal& answer : answers) {
    threads.emplace_back([&] { answer = AskedConvolution{.kernel = 7}.Ask(*device_, *ahead); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(GpuPlansSoFar().built, before + 1);
  Plan({.kernel = 7});
  EXPECT_EQ(GpuPlansSoFar().built, before + 1);
}

// Building them ends in a call of the driver, so they are proposed but not built.
TEST_F(CudnnProblemTest, EnginesThatAreCompiledAreMarked) {
  if (!LoadDriverOrStub()) GTEST_SKIP() << "no driver and no toolkit's stub of one";
  const int64_t before = GpuPlansSoFar().built;
  const Kernel fused = Plan({.has_bias_and_relu = true});
  EXPECT_THAT(fused.algorithms, Contains(HasSubstr("(needs a driver to be built)")));
  EXPECT_EQ(GpuPlansSoFar().built, before);
  EXPECT_THAT(Plan({.kernel = 1}).algorithms, Each(Not(HasSubstr("driver"))));
}

// Returns whether one of cuDNN's engines adds three gradients and applies that of a ReLU while it
// computes the data gradient of a convolution of 64 to 64 channels.
bool TakesInWhatFollows(DType type, int64_t kernel, int64_t stride, int64_t group = 1) {
  using Kind = ops::Pointwise::Kind;
  const Op op(ops::ConvGradData{
      {{kernel, kernel}, {stride, stride}, {kernel / 2, kernel / 2}, {1, 1}, group},
      {},
      {{Kind::kAdd, 0, 0, 2},
       {Kind::kAdd, 0, 0, 3},
       {Kind::kAdd, 0, 0, 4},
       {Kind::kReluGrad, 0.1f, 0, 5}}});
  const auto with_type = [&](OperandDesc operand) {
    operand.dtype = type;
    return operand;
  };
  const OperandDesc x = with_type(Operand({32, 64, 28, 28}, Layout::kChannelsLast));
  const OperandDesc y =
      with_type(Operand({32, 64, 28 / stride, 28 / stride}, Layout::kChannelsLast));
  const OperandDesc w = with_type(Operand({64, 64 / group, kernel, kernel}));
  const std::vector<OperandDesc> inputs = {y, w, x, x, x, x}, outputs = {x};
  const auto device = DescribeDevice(DeviceKind::kCuda, "H200");
  const KernelCandidate& candidate =
      KernelRegistry::Get().Candidates(DeviceKind::kCuda, typeid(ops::ConvGradData))[0];
  EXPECT_EQ(candidate.name, "conv-grad-data-cudnn");
  EXPECT_TRUE(candidate.traits.fuses(*op.epilogue()));
  const auto answer = candidate.factory({op, inputs, outputs, *device});
  return std::get<Kernel>(answer).algorithms.at(0).find("driver") != std::string::npos;
}

// As described in docs/gpu_internals.md. Only engines that are compiled have such epilogues.
TEST_F(CudnnProblemTest, GradientsTakeInWhatFollows) {
  if (!LoadDriverOrStub()) GTEST_SKIP() << "no driver and no toolkit's stub of one";
  for (const DType type : {DType::kBFloat16, DType::kFloat16, DType::kFloat}) {
    for (const int64_t kernel : {1, 3, 5}) {
      for (const int64_t stride : {1, 2})
        EXPECT_TRUE(TakesInWhatFollows(type, kernel, stride)) << Name(type) << kernel << stride;
    }
  }
  EXPECT_FALSE(TakesInWhatFollows(DType::kBFloat16, 3, 1, 2));
}

struct Convolved {
  int64_t channels, outputs, kernel, stride, size;
};

// The number of engines for an H200, compiled, that compute a convolution and its statistics.
size_t NumStatisticsEngines(DType type, const Convolved& asked) {
  const int64_t pad = asked.kernel / 2;
  const ops::Conv conv{
      {{asked.kernel, asked.kernel}, {asked.stride, asked.stride}, {pad, pad}, {1, 1}, 1}};
  const int64_t size = conv.geometry.OutputSize(0, asked.size);
  const Op op(testing::StatisticsOf(conv));
  OperandDesc statistics = Operand({asked.outputs});
  std::vector<OperandDesc> inputs = {
      Operand({256, asked.channels, asked.size, asked.size}, Layout::kChannelsLast),
      Operand({asked.outputs, asked.channels, asked.kernel, asked.kernel})};
  std::vector<OperandDesc> outputs = {
      Operand({256, asked.outputs, size, size}, Layout::kChannelsLast), statistics, statistics};
  for (OperandDesc* operand : {&inputs[0], &inputs[1], &outputs[0]}) operand->dtype = type;
  outputs[1].dtype = outputs[2].dtype = DType::kFloat;
  const auto device = DescribeDevice(DeviceKind::kCuda, "H200");
  const KernelCandidate& candidate = testing::FirstFor(DeviceKind::kCuda, op);
  EXPECT_EQ(candidate.name, "conv-statistics-cudnn");
  const auto answer = candidate.factory({op, inputs, outputs, *device});
  const Kernel* const kernel = std::get_if<Kernel>(&answer);
  return kernel == nullptr ? 0 : kernel->algorithms.size();
}

// ResNet-50's convolutions after the first one, which has 3 channels and a window of 7x7.
TEST_F(CudnnProblemTest, ConvolutionsSumStatisticsInFloat16) {
  if (!LoadDriverOrStub()) GTEST_SKIP() << "no driver and no toolkit's stub of one";
  for (const Convolved& asked :
       std::vector<Convolved>{{64, 64, 1, 1, 56},    {64, 64, 3, 1, 56},    {64, 256, 1, 1, 56},
                              {256, 64, 1, 1, 56},   {256, 128, 1, 2, 56},  {128, 128, 3, 1, 28},
                              {128, 512, 1, 1, 28},  {256, 512, 1, 2, 56},  {512, 128, 1, 1, 28},
                              {512, 256, 1, 2, 28},  {256, 256, 3, 1, 14},  {256, 1024, 1, 1, 14},
                              {512, 1024, 1, 2, 28}, {1024, 256, 1, 1, 14}, {1024, 512, 1, 2, 14},
                              {512, 512, 3, 1, 7},   {512, 2048, 1, 1, 7},  {1024, 2048, 1, 2, 14},
                              {2048, 512, 1, 1, 7},  {128, 128, 3, 2, 56},  {8, 8, 5, 1, 28}}) {
    EXPECT_GE(NumStatisticsEngines(DType::kFloat16, asked), 1u)
        << asked.channels << " " << asked.outputs << " " << asked.kernel << " " << asked.stride;
  }
  for (const Convolved& asked : std::vector<Convolved>{
           {3, 64, 7, 2, 224}, {64, 64, 7, 1, 28}, {12, 24, 3, 1, 28}, {16, 20, 3, 1, 28}})
    EXPECT_EQ(NumStatisticsEngines(DType::kFloat16, asked), 0u) << asked.channels;
  EXPECT_EQ(NumStatisticsEngines(DType::kBFloat16, {64, 64, 3, 1, 56}), 0u);
}

// With bias and ReLU, into channels 64 to 192 of 256.
TEST_F(CudnnProblemTest, ConvolutionsWriteIntoPartOfATensor) {
  if (!LoadDriverOrStub()) GTEST_SKIP() << "no driver and no toolkit's stub of one";
  for (const DType type : {DType::kBFloat16, DType::kFloat16, DType::kFloat}) {
    for (const int64_t kernel : {1, 3, 5}) {
      const int64_t pad = kernel / 2;
      const Op op(testing::IntoOf({{{kernel, kernel}, {1, 1}, {pad, pad}, {1, 1}, 1},
                                   {},
                                   {{.kind = ops::Pointwise::Kind::kRelu}}},
                                  64, {256, 128, 28, 28}));
      std::vector<OperandDesc> inputs = {Operand({256, 96, 28, 28}, Layout::kChannelsLast),
                                         Operand({128, 96, kernel, kernel}), Operand({128}),
                                         Operand({256, 256, 28, 28}, Layout::kChannelsLast)};
      for (const size_t i : {0, 1, 3}) inputs[i].dtype = type;
      inputs[2].dtype = DType::kFloat;
      const std::vector<OperandDesc> outputs = {inputs[3]};
      const KernelCandidate& candidate = testing::FirstFor(DeviceKind::kCuda, op);
      EXPECT_EQ(candidate.name, "conv-into-cudnn");
      const auto answer = candidate.factory({op, inputs, outputs, *device_});
      EXPECT_TRUE(std::holds_alternative<Kernel>(answer)) << Name(type) << kernel;
    }
  }
}

// The part of a tensor that is written may begin at any channel. An engine that writes packs of 16
// bytes there loses the device, so it must not be proposed.
TEST_F(CudnnProblemTest, PartsOfATensorAreWrittenAsTheyLie) {
  const auto engines = [&](int64_t offset) {
    const Op op(testing::IntoOf({{{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}}, offset, {256, 64, 28, 28}));
    const OperandDesc whole = Operand({256, 128, 28, 28}, Layout::kChannelsLast);
    OperandDesc bias = Operand({64});
    bias.present = false;
    const std::vector<OperandDesc> inputs = {Operand({256, 64, 28, 28}, Layout::kChannelsLast),
                                             Operand({64, 64, 3, 3}), bias, whole};
    const std::vector<OperandDesc> outputs = {whole};
    const KernelCandidate& candidate = testing::FirstFor(DeviceKind::kCuda, op);
    EXPECT_EQ(candidate.name, "conv-into-cudnn");
    const auto answer = candidate.factory({op, inputs, outputs, *device_});
    const Kernel* const kernel = std::get_if<Kernel>(&answer);
    return kernel == nullptr ? std::vector<std::string>() : kernel->algorithms;
  };
  EXPECT_EQ(engines(8), engines(16));
  EXPECT_NE(engines(4), engines(8));
}

// Engines that write floats do not use the current tensor cores.
TEST_F(CudnnProblemTest, GradientsAtWeightsAreWrittenInTheImagesType) {
  const OperandDesc x = Operand({256, 256, 14, 14}, Layout::kChannelsLast);
  OperandDesc dw = Operand({256, 256, 3, 3});
  dw.dtype = DType::kFloat;
  const Op op(ops::ConvGradWeights{{{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}});
  const KernelCandidate& candidate =
      KernelRegistry::Get().Candidates(DeviceKind::kCuda, typeid(ops::ConvGradWeights))[0];
  EXPECT_EQ(candidate.name, "conv-grad-weights-cudnn");
  const std::vector<OperandDesc> inputs = {x, x}, outputs = {dw};
  const auto answer = candidate.factory({op, inputs, outputs, *device_});
  EXPECT_THAT(std::get<Kernel>(answer).algorithms.at(0), HasSubstr(", dw in 16 bits"));
}

// The engine that cuDNN proposes for the weights' gradient of a convolution in `groups` over 13x13
// pixels, with x_channels of x_pitch and y_channels of y_pitch channels.
std::string EngineOfWeights(CudaDevice& device, int64_t x_channels, int64_t x_pitch,
                            int64_t y_channels, int64_t y_pitch, int groups) {
  const auto strides = [](int64_t channels) {
    return std::vector<int64_t>{13 * 13 * channels, 1, 13 * channels, channels};
  };
  constexpr DType kType = DType::kBFloat16;
  const int64_t of_group = x_channels / groups;
  CudnnGraph conv(device, kType);
  auto window = fe::graph::Conv_wgrad_attributes();
  window.set_padding({1, 1}).set_stride({1, 1}).set_dilation({1, 1});
  const CudnnTensor dw = conv.graph().conv_wgrad(
      conv.Input(1, {256, y_channels, 13, 13}, strides(y_pitch), kType),
      conv.Input(2, {256, x_channels, 13, 13}, strides(x_pitch), kType), window);
  conv.Output(3, dw, {y_channels, of_group, 3, 3}, {9 * of_group, 1, 3 * of_group, of_group},
              kType);
  EXPECT_EQ(conv.Plan({.is_timed = false,
                       .problem = StrCat(x_channels, " of ", x_pitch, " in ", groups)}),
            "");
  return StrCat("eng", EngineNumber(conv.engines().at(0)));
}

// AlexNet's fifth convolution. One group gets the engine of a separate convolution.
TEST_F(CudnnProblemTest, GroupsAloneHaveNewerEngines) {
  auto& device = static_cast<CudaDevice&>(*device_);
  const std::string both = EngineOfWeights(device, 384, 384, 256, 256, 2);
  const std::string one = EngineOfWeights(device, 192, 384, 128, 256, 1);
  EXPECT_EQ(one, EngineOfWeights(device, 192, 192, 128, 128, 1));
  EXPECT_NE(one, both);
}

// The reason why cuDNN's normalisation is not used on a chip that is not present.
std::string NormRefusal(const Op& op, std::vector<OperandDesc> inputs,
                        std::vector<OperandDesc> outputs) {
  const auto device = DescribeDevice(DeviceKind::kCuda, "H200");
  const KernelCandidate& candidate =
      KernelRegistry::Get().Candidates(DeviceKind::kCuda, op.type())[0];
  EXPECT_THAT(candidate.name, HasSubstr("-cudnn"));
  return std::get<Refusal>(candidate.factory({op, inputs, outputs, *device})).reason;
}

// There are engines for normalisations that add and apply ReLU, and for gradients without them.
TEST_F(CudnnProblemTest, NormalisationsAreForTiming) {
  if (!LoadDriverOrStub()) GTEST_SKIP() << "no driver and no toolkit's stub of one";
  for (const DType type : {DType::kBFloat16, DType::kFloat16, DType::kFloat}) {
    OperandDesc x = Operand({256, 256, 56, 56}, Layout::kChannelsLast), c = Operand({256});
    x.dtype = type;
    c.dtype = DType::kFloat;
    ops::Epilogue epilogue = {{.kind = ops::Pointwise::Kind::kAdd, .operand = 3},
                              {.kind = ops::Pointwise::Kind::kRelu}};
    EXPECT_THAT(NormRefusal(ops::BatchNorm{1e-5, epilogue}, {x, c, c, x}, {x, c, c}),
                ::testing::AllOf(HasSubstr("eng0"), HasSubstr("timed to be faster")));
    EXPECT_THAT(NormRefusal(ops::BatchNormGrad{}, {x, c, c, x, c}, {x, c, c}),
                ::testing::AllOf(HasSubstr("eng0"), HasSubstr("timed to be faster")));
    EXPECT_THAT(NormRefusal(ops::BatchNormGrad{}, {x, c, c, x, c, x}, {x, c, c}),
                HasSubstr("ReLU's result"));
    x.layout = Layout::kPlain;
    EXPECT_THAT(NormRefusal(ops::BatchNorm{}, {x, c, c}, {x, c, c}), HasSubstr("lie last"));
  }
}

TEST(CudnnVersionTest, AnotherCudaIsNamedWithTheFile) {
  EXPECT_EQ(CudnnProblemOf(91900, 13000, "/a/libcudnn.so.9"), "");
  EXPECT_THAT(CudnnProblemOf(91900, 12090, "/a/libcudnn.so.9"),
              ::testing::AllOf(HasSubstr("/a/libcudnn.so.9"), HasSubstr("made for CUDA 12.9"),
                               HasSubstr("CAFFE_CUDA_LIBRARY_PATH")));
  EXPECT_THAT(CudnnProblemOf(80900, 0, "/b/libcudnn.so"), HasSubstr("/b/libcudnn.so"));
  EXPECT_EQ(CudnnVersionText(91900), "9.19.0");
}

// The loader finds such parts if LD_LIBRARY_PATH has another cuDNN than the one found here.
TEST(CudnnVersionTest, PartsOfSeveralVersionsAreNamedWithTheirFiles) {
  const std::string file = CudnnLibrary().path();
  for (const cudnnStatus_t status :
       {CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED}) {
    EXPECT_THAT(CudnnErrorText(status, "cudnnCreate"),
                ::testing::AllOf(HasSubstr("cudnnCreate"), HasSubstr(file),
                                 HasSubstr("different versions"), HasSubstr("LD_LIBRARY_PATH")));
  }
  EXPECT_THAT(CudnnErrorText(CUDNN_STATUS_EXECUTION_FAILED, "cudnnCreate"),
              ::testing::Not(HasSubstr("versions")));
}

TEST(CudnnErrorTest, WithoutMemoryItSaysWhatToDo) {
  EXPECT_THAT(CudnnErrorText(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "cudnnCreate"),
              HasSubstr("lower batch_size"));
}

}  // namespace
}  // namespace caffe::cuda
