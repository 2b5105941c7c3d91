// cuDNN's engines for products of 8-bit numbers, on chips that are only described.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/cuda/nvidia_libraries.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {
namespace {

using ::testing::HasSubstr;
using Kind = ops::Pointwise::Kind;

OperandDesc Int8Operand(Shape shape, DType type, Layout layout = Layout::kPlain) {
  OperandDesc operand;
  operand.shape = std::move(shape);
  operand.dtype = type;
  operand.layout = layout;
  operand.scale = Is8Bit(type) ? 0.05F : 1;
  operand.may_be_packed = true;
  return operand;
}

const KernelCandidate& Candidate(std::type_index op, const std::string& name) {
  for (const KernelCandidate& candidate : KernelRegistry::Get().Candidates(DeviceKind::kCuda, op)) {
    if (candidate.name == name) return candidate;
  }
  throw InternalError("no candidate " + name);
}

struct Int8Convolution {
  int64_t channels, outputs, kernel, stride, size, group = 1;
};

// A plan for 32 images, with bias and epilogue.
KernelOrRefusal Plan(const char* chip, const Int8Convolution& asked, const ops::Epilogue& epilogue,
                     DType to = DType::kInt8) {
  const auto device = DescribeDevice(DeviceKind::kCuda, chip);
  const int64_t pad = asked.kernel / 2;
  const ops::ConvGeometry geometry{
      {asked.kernel, asked.kernel}, {asked.stride, asked.stride}, {pad, pad}, {1, 1}, asked.group};
  const Op op(ops::Conv{geometry, {}, epilogue});
  const int64_t size = geometry.OutputSize(0, asked.size);
  const OperandDesc y = Int8Operand({32, asked.outputs, size, size}, to, Layout::kChannelsLast);
  std::vector<OperandDesc> inputs = {
      Int8Operand({32, asked.channels, asked.size, asked.size}, DType::kInt8,
                  Layout::kChannelsLast),
      Int8Operand({asked.outputs, asked.channels / asked.group, asked.kernel, asked.kernel},
                  DType::kFloat),
      Int8Operand({asked.outputs}, DType::kFloat),
      Int8Operand(y.shape, DType::kInt8, Layout::kChannelsLast)};
  const std::vector<OperandDesc> outputs = {y};
  return Candidate(typeid(ops::Conv), "conv-cudnn-int8").factory({op, inputs, outputs, *device});
}

// If everything is in one step, the workspace holds no sums.
void ExpectFused(const KernelOrRefusal& answer, int64_t outputs, const std::string& what) {
  const Kernel* const kernel = std::get_if<Kernel>(&answer);
  ASSERT_NE(kernel, nullptr) << what << ": " << std::get<Refusal>(answer).reason;
  EXPECT_FALSE(kernel->algorithms.empty()) << what;
  EXPECT_TRUE(kernel->packed_weights.has_value()) << what;
  EXPECT_LT(kernel->workspace_bytes, static_cast<size_t>(outputs) * sizeof(float)) << what;
}

// All of ResNet-50's convolutions, and those of MobileNet-v2 that are not depthwise.
const std::vector<Int8Convolution> kConvolutions = {
    {3, 64, 7, 2, 224},   {64, 64, 1, 1, 56},   {64, 64, 3, 1, 56},   {64, 256, 1, 1, 56},
    {256, 128, 1, 1, 56}, {128, 128, 3, 2, 56}, {128, 512, 1, 1, 28}, {256, 512, 1, 2, 56},
    {512, 512, 3, 1, 7},  {512, 2048, 1, 1, 7}, {3, 32, 3, 2, 224},   {32, 16, 1, 1, 112},
    {16, 96, 1, 1, 112},  {96, 24, 1, 1, 56},   {24, 144, 1, 1, 56},  {144, 32, 1, 1, 28},
    {320, 1280, 1, 1, 7}, {64, 64, 3, 1, 56, 2}};

class Int8EnginesTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!LoadDriverOrStub()) GTEST_SKIP() << "no driver and no toolkit's stub of one";
  }
};

TEST_P(Int8EnginesTest, DoEverythingInOneStep) {
  const ops::Epilogue of_block = {{Kind::kAdd, 0, 0, 3}, {Kind::kRelu}};
  for (const Int8Convolution& asked : kConvolutions) {
    const int64_t size = (asked.size + asked.stride - 1) / asked.stride;
    const int64_t outputs = 32 * asked.outputs * size * size;
    const std::string what = StrCat(GetParam(), ": ", asked.channels, " to ", asked.outputs);
    ExpectFused(Plan(GetParam(), asked, {{Kind::kRelu}}), outputs, what);
    ExpectFused(Plan(GetParam(), asked, of_block), outputs, what + ", add");
    ExpectFused(Plan(GetParam(), asked, {{Kind::kClip, 0, 6}}), outputs, what + ", clip");
    ExpectFused(Plan(GetParam(), asked, {}, DType::kFloat), outputs, what + ", to float");
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Int8EnginesTest,
                         ::testing::Values("A100", "L40S", "H100", "H200", "B200"));

class Int8SumsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!LoadDriverOrStub()) GTEST_SKIP() << "no driver and no toolkit's stub of one";
  }
};

// If no engine does all of it, an engine computes 32-bit sums and our own step finishes them.
TEST_F(Int8SumsTest, TuringSumsWhereItCannotFuse) {
  const auto answer = Plan("T4", {3, 64, 7, 2, 224}, {{Kind::kRelu}});
  const Kernel* const kernel = std::get_if<Kernel>(&answer);
  ASSERT_NE(kernel, nullptr) << std::get<Refusal>(answer).reason;
  EXPECT_GE(kernel->workspace_bytes, size_t{32} * 64 * 112 * 112 * sizeof(float));
  ExpectFused(Plan("T4", {64, 64, 3, 1, 56}, {{Kind::kRelu}}), 32 * 64 * 56 * 56, "T4");
}

TEST_F(Int8SumsTest, LimitsFromElsewhereThan0AreAStepOfTheirOwn) {
  const auto answer = Plan("H200", {64, 64, 3, 1, 56}, {{Kind::kClip, -1, 1}});
  EXPECT_GE(std::get<Kernel>(answer).workspace_bytes, size_t{32} * 64 * 56 * 56 * sizeof(float));
}

TEST_P(Int8EnginesTest, MultiplyMatrices) {
  const auto device = DescribeDevice(DeviceKind::kCuda, GetParam());
  for (const auto& [rows, inner, columns] :
       std::vector<std::array<int64_t, 3>>{{32, 2048, 1000}, {1, 500, 10}, {64, 801, 11}}) {
    const Op op(ops::Gemm{.rows = rows, .columns = columns, .inner = inner, .transpose_b = true});
    const std::vector<OperandDesc> inputs = {Int8Operand({rows, inner}, DType::kInt8),
                                             Int8Operand({columns, inner}, DType::kFloat),
                                             Int8Operand({columns}, DType::kFloat)};
    const std::vector<OperandDesc> outputs = {Int8Operand({rows, columns}, DType::kFloat)};
    ExpectFused(
        Candidate(typeid(ops::Gemm), "gemm-cudnn-int8").factory({op, inputs, outputs, *device}),
        rows * columns, StrCat(rows, "x", inner, "x", columns));
  }
}

TEST(Int8ShapesTest, SomeAreNotForCudnn) {
  const auto device = DescribeDevice(DeviceKind::kCuda, "H200");
  const KernelCandidate& conv = Candidate(typeid(ops::Conv), "conv-cudnn-int8");
  const Op depthwise(ops::Conv{{{3, 3}, {1, 1}, {1, 1}, {1, 1}, 8}});
  std::vector<OperandDesc> inputs = {Int8Operand({1, 8, 9, 9}, DType::kFloat),
                                     Int8Operand({8, 1, 3, 3}, DType::kFloat)};
  EXPECT_THAT(conv.traits.why_not(depthwise, inputs, *device), HasSubstr("a filter each"));
  const Op volume(ops::Conv{{{3, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1}});
  EXPECT_THAT(conv.traits.why_not(volume, inputs, *device), HasSubstr("two spatial axes"));
}

}  // namespace
}  // namespace caffe::cuda
