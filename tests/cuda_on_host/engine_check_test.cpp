// A fused kernel is used only if it computes the same as the steps that it replaces. Our own
// kernels, with or without a mistake, replace cuDNN.
#include "caffe/cuda/engine_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "caffe/cuda/gradient_epilogue.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/ops/norm.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/fused_regions.hpp"
#include "tests/support/temporary_folder.hpp"
#include "work_queue.hpp"

namespace caffe::cuda {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using PointwiseKind = ops::Pointwise::Kind;

constexpr const char* kKey = "H200|cudnn 91900|check of eng1 for a convolution";

ops::ConvGradData Gradient(ops::Epilogue epilogue) {
  return {{{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}, {}, std::move(epilogue)};
}

OperandDesc ChannelsLastOperand(Shape shape, DType type, Layout layout = Layout::kChannelsLast) {
  OperandDesc operand;
  operand.shape = std::move(shape);
  operand.dtype = type;
  operand.layout = layout;
  return operand;
}

class CudaEngineCheckTest : public ::testing::TestWithParam<DType> {
 protected:
  // A kernel that computes this epilogue, and counts its runs.
  Kernel KernelWith(ops::Epilogue epilogue) {
    const Op op(Gradient(std::move(epilogue)));
    const auto& candidates =
        KernelRegistry::Get().Candidates(DeviceKind::kCuda, typeid(ops::ConvGradData));
    Kernel kernel = std::get<Kernel>(candidates.back().factory({op, inputs_, outputs_, *device_}));
    kernel.algorithms = {"eng1"};
    kernel.run = [this, run = kernel.run](const KernelContext& ctx) {
      ++runs_;
      run(ctx);
    };
    return kernel;
  }

  // Decides like a separate process. Returns whether it uses the fused kernel; the log is in said_.
  bool IsTaken(Kernel fused, bool is_timed = false) {
    const Op op(Gradient(epilogue_));
    AlgorithmCache cache(file_);
    fused.name = "fused";
    runs_ = 0;
    ::testing::internal::CaptureStderr();
    const KernelOrRefusal taken =
        CheckedKernel({op, inputs_, outputs_, *device_}, {cache, kKey, is_timed}, std::move(fused),
                      [&]() -> KernelOrRefusal {
                        Kernel plain = KernelWith(epilogue_);
                        plain.name = "plain";
                        return plain;
                      });
    said_ = ::testing::internal::GetCapturedStderr();
    return std::get<Kernel>(taken).name == "fused";
  }

  // Makes this process's attempts look like those of a process that has ended.
  void EndProcess() const {
    std::stringstream lines;
    lines << std::ifstream(file_).rdbuf();
    const std::regex process("(\t\\?[^\t]*\t[^\t]*\t)[^\t]*\t[^\t]*");
    const std::string text = lines.str();
    std::ofstream(file_) << std::regex_replace(text, process, "$011073741824\tgone");
  }

  void ExpectRefused(const Kernel& wrong) {
    std::ofstream(file_).close();  // forgets everything
    EXPECT_FALSE(IsTaken(wrong));
    EXPECT_EQ(runs_, 2);
    EXPECT_THAT(said_, HasSubstr("eng1 computes ConvGradData"));
    EXPECT_FALSE(IsTaken(wrong)) << "the cache remembers it";
    EXPECT_EQ(runs_, 0);
    EXPECT_THAT(said_, IsEmpty());
  }

  const std::shared_ptr<Device> device_ = MakeDevice(DeviceKind::kCuda);
  const testing::TemporaryFolder folder_;
  const std::string file_ = folder_.path("algorithms.tsv");
  const Shape x_{2, 16, 6, 5};
  const std::vector<OperandDesc> inputs_ = {
      ChannelsLastOperand({2, 24, 6, 5}, GetParam()),
      ChannelsLastOperand({24, 16, 3, 3}, GetParam(), Layout::kPlain),
      ChannelsLastOperand(x_, GetParam()), ChannelsLastOperand(x_, GetParam()),
      ChannelsLastOperand(x_, GetParam())};
  const std::vector<OperandDesc> outputs_ = {ChannelsLastOperand(x_, GetParam())};
  const ops::Epilogue epilogue_ = {{PointwiseKind::kAdd, 0, 0, 2},
                                   {PointwiseKind::kAdd, 0, 0, 3},
                                   {PointwiseKind::kReluGrad, 0, 0, 4}};
  int runs_ = 0;
  std::string said_;
};

TEST_P(CudaEngineCheckTest, TakesAKernelThatAgreesAndTriesItOnce) {
  // Rounded after each step, like the plain path.
  Kernel fused = KernelWith({});
  fused.run = [this, run = fused.run](const KernelContext& ctx) {
    run(ctx);
    ApplyGradientEpilogue(ctx, {epilogue_[0]});
    ApplyGradientEpilogue(ctx, {epilogue_[1], epilogue_[2]});
  };
  EXPECT_TRUE(IsTaken(fused));
  EXPECT_EQ(runs_, 2);
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_TRUE(IsTaken(fused));
  EXPECT_EQ(runs_, 0);
}

// In a net the workspace holds values that other kernels have left there.
TEST_P(CudaEngineCheckTest, RefusesAKernelThatNeedsAWorkspaceOfZeros) {
  Kernel fused = KernelWith(epilogue_);
  fused.workspace_bytes = outputs_[0].bytes();
  fused.run = [run = fused.run](const KernelContext& ctx) {
    run(ctx);
    KernelContext adding = ctx;
    std::vector<TensorView> inputs(ctx.inputs.begin(), ctx.inputs.end());
    inputs[2].data = ctx.workspace;
    adding.inputs = inputs;
    ApplyGradientEpilogue(adding, {{PointwiseKind::kAdd, 0, 0, 2}});
  };
  ExpectRefused(fused);
}

// Several threads build plans of the plain kernel in advance if the check will need it.
TEST_P(CudaEngineCheckTest, AThreadAheadOfItMakesThePlainKernelWhereItIsNeeded) {
  std::weak_ptr<int> plans;
  const auto ahead = [&] {
    AlgorithmCache cache(file_);
    runs_ = 0;
    Kernel fused = AheadOfCheck({cache, kKey, false}, KernelWith(epilogue_), [&] {
      Kernel plain = KernelWith(epilogue_);
      const auto held = std::make_shared<int>();
      plain.run = [held](const KernelContext&) {};
      plans = held;
      return KernelOrRefusal(plain);
    });
    EXPECT_EQ(fused.algorithms, std::vector<std::string>{"eng1"});
    return fused;
  };
  {
    const Kernel fused = ahead();
    EXPECT_FALSE(plans.expired()) << "held for as long as the answer";
    EXPECT_EQ(runs_, 0);
  }
  EXPECT_TRUE(plans.expired());
  EXPECT_FALSE(IsTaken(KernelWith({epilogue_[0]})));
  {
    const Kernel fused = ahead();
    EXPECT_FALSE(plans.expired()) << "it serves";
  }
  std::ofstream(file_).close();  // forgets
  EXPECT_TRUE(IsTaken(KernelWith(epilogue_)));
  const Kernel fused = ahead();
  EXPECT_TRUE(plans.expired()) << "nothing asks for it any more";
}

TEST_P(CudaEngineCheckTest, RefusesAKernelThatLeavesSomethingOut) {
  ExpectRefused(KernelWith({epilogue_[0], epilogue_[1]}));
  ExpectRefused(KernelWith({epilogue_[0], epilogue_[2]}));
  ExpectRefused(KernelWith({epilogue_[1], epilogue_[2]}));
}

TEST_P(CudaEngineCheckTest, RefusesAKernelThatTakesOneOperandForAnother) {
  ExpectRefused(KernelWith(
      {epilogue_[0], {PointwiseKind::kAdd, 0, 0, 4}, {PointwiseKind::kReluGrad, 0, 0, 3}}));
  ExpectRefused(KernelWith({epilogue_[0], epilogue_[1], {PointwiseKind::kReluGrad, 1, 0, 4}}));
}

TEST_P(CudaEngineCheckTest, RefusesAKernelThatWritesNothingOrNoNumbers) {
  Kernel nothing = KernelWith(epilogue_);
  nothing.run = [this](const KernelContext&) { ++runs_; };
  ExpectRefused(nothing);
  Kernel none = KernelWith(epilogue_);
  none.run = [run = none.run](const KernelContext& ctx) {
    run(ctx);
    const std::vector<char> bytes(ctx.output(0).bytes(), '\xff');  // NaN in each type
    MakeDevice(DeviceKind::kCuda)->CopyFromHost(ctx.output(0).data, bytes.data(), bytes.size());
  };
  ExpectRefused(none);
}

TEST_P(CudaEngineCheckTest, LeavesOutAKernelThatTakesLonger) {
  Kernel slow = KernelWith(epilogue_);
  slow.run = [run = slow.run](const KernelContext& ctx) {
    for (int i = 0; i < 20; ++i) run(ctx);
  };
  for (int process = 0; process < 2; ++process) {
    EXPECT_FALSE(IsTaken(slow, /*is_timed=*/true));
    EXPECT_EQ(runs_ > 0, process == 0);
    EXPECT_THAT(said_, IsEmpty());
  }
  std::ofstream(file_).close();  // forgets
  EXPECT_TRUE(IsTaken(slow)) << "two timings may disagree";
}

// The lines of processes that tried the kernel and never finished.
TEST_P(CudaEngineCheckTest, RefusesAKernelThatEndedThreeStarts) {
  const auto ended_after = [&](int lost) {
    std::ofstream(file_) << kKey << "\t?eng1\tsomewhere\t1\t77\t1000\t" << lost << "\n";
  };
  ended_after(1);
  EXPECT_TRUE(IsTaken(KernelWith(epilogue_))) << "it may have been ended by a user, twice";
  ended_after(2);
  EXPECT_FALSE(IsTaken(KernelWith(epilogue_)));
  EXPECT_EQ(runs_, 0);
  EXPECT_THAT(said_, HasSubstr("did not come back"));
}

// Such a failure says nothing about the kernel.
TEST_P(CudaEngineCheckTest, TriesAKernelAnewThatHadNoMemory) {
  cuda_on_host::LeaveMemoryFor(3);
  EXPECT_FALSE(IsTaken(KernelWith(epilogue_)));
  EXPECT_TRUE(cuda_on_host::EndTrouble());
  EXPECT_THAT(said_, AllOf(HasSubstr("eng1 is not used"), HasSubstr("out of memory")));
  EndProcess();
  EXPECT_TRUE(IsTaken(KernelWith(epilogue_)));
  EXPECT_THAT(said_, IsEmpty());
}

// This holds wherever the loss is noticed. The process cannot continue, and the next one leaves the
// kernel out.
TEST_P(CudaEngineCheckTest, ALostDeviceEndsTheCheck) {
  for (int calls = 0; calls < 6; ++calls) {
    SCOPED_TRACE(calls);
    std::ofstream(file_).close();  // forgets
    Kernel fused = KernelWith(epilogue_);
    fused.run = [run = fused.run, calls](const KernelContext& ctx) {
      cuda_on_host::LoseDeviceAfter(0, calls);
      run(ctx);
    };
    EXPECT_THAT(ErrorText<DeviceFault>([&] { IsTaken(fused); }),
                AllOf(HasSubstr("device 0 is lost"), HasSubstr("eng1"), HasSubstr("start again")));
    ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(cuda_on_host::EndTrouble());
    EXPECT_FALSE(IsTaken(fused));
    EXPECT_THAT(said_, HasSubstr("is not tried"));
  }
}

TEST_P(CudaEngineCheckTest, TakesAKernelThatHasNoOther) {
  const Op op(Gradient(epilogue_));
  AlgorithmCache cache(file_);
  const KernelOrRefusal taken =
      CheckedKernel({op, inputs_, outputs_, *device_}, {cache, kKey}, KernelWith(epilogue_),
                    [] { return Refusal{"no engine"}; });
  EXPECT_TRUE(std::holds_alternative<Kernel>(taken));
}

// In turn, no output and each output of a convolution with statistics is wrong.
TEST(CudaEngineCheckOutputsTest, ComparesEachOutput) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  const testing::TemporaryFolder folder;
  const Op op(testing::StatisticsOf({{{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}}));
  const OperandDesc image = ChannelsLastOperand({2, 16, 6, 5}, DType::kFloat16);
  const OperandDesc numbers = ChannelsLastOperand({16}, DType::kFloat, Layout::kPlain);
  const std::vector<OperandDesc> inputs = {
      image, ChannelsLastOperand({16, 16, 1, 1}, DType::kFloat16, Layout::kPlain)};
  const std::vector<OperandDesc> outputs = {image, numbers, numbers};
  const KernelRequest request{op, inputs, outputs, *device};
  const auto make = [&] { return testing::FirstFor(DeviceKind::kCuda, op).factory(request); };
  for (const int wrong : {-1, 0, 1, 2}) {
    Kernel fused = std::get<Kernel>(make());
    fused.name = "fused";
    fused.run = [run = fused.run, wrong, &device](const KernelContext& ctx) {
      run(ctx);
      if (wrong < 0) return;
      device->Synchronize();
      const std::vector<char> zeros(ctx.output(wrong).bytes());
      device->CopyFromHost(ctx.output(wrong).data, zeros.data(), zeros.size());
    };
    AlgorithmCache cache(folder.path(StrCat(wrong, ".tsv")));
    const KernelOrRefusal taken = CheckedKernel(request, {cache, kKey, false}, fused, make);
    EXPECT_EQ(std::get<Kernel>(taken).name == "fused", wrong < 0) << wrong;
  }
}

// The check runs two kernels one after the other, so each would start from the other's result.
TEST(CudaEngineCheckOutputsTest, LeavesOutWhatIsUpdatedInPlace) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  const testing::TemporaryFolder folder;
  const Op op(
      testing::StatisticsOf({{{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}}, ops::UpdateRunningStatistics{}));
  const OperandDesc image = ChannelsLastOperand({2, 16, 6, 5}, DType::kFloat16);
  const OperandDesc numbers = ChannelsLastOperand({16}, DType::kFloat, Layout::kPlain);
  const OperandDesc one = ChannelsLastOperand({1}, DType::kFloat, Layout::kPlain);
  const std::vector<OperandDesc> inputs = {
      image, ChannelsLastOperand({16, 16, 1, 1}, DType::kFloat16, Layout::kPlain)};
  const std::vector<OperandDesc> outputs = {image, numbers, numbers, numbers, numbers, one};
  const KernelRequest request{op, inputs, outputs, *device};
  const auto make = [&] { return testing::FirstFor(DeviceKind::kCuda, op).factory(request); };
  Kernel fused = std::get<Kernel>(make());
  fused.name = "fused";
  AlgorithmCache cache(folder.path("algorithms.tsv"));
  EXPECT_EQ(std::get<Kernel>(CheckedKernel(request, {cache, kKey, false}, fused, make)).name,
            "fused");
}

// With negative noise as variances both kernels would produce NaN.
TEST(CudaEngineCheckOutputsTest, VariancesArePositive) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  const testing::TemporaryFolder folder;
  const Op op(ops::BatchNormGrad{});
  const OperandDesc image = ChannelsLastOperand({2, 16, 6, 5}, DType::kFloat16);
  const OperandDesc numbers = ChannelsLastOperand({16}, DType::kFloat, Layout::kPlain);
  const std::vector<OperandDesc> inputs = {image, numbers, numbers, image, numbers};
  const std::vector<OperandDesc> outputs = {image, numbers, numbers};
  const KernelRequest request{op, inputs, outputs, *device};
  const auto make = [&] { return testing::FirstFor(DeviceKind::kCuda, op).factory(request); };
  Kernel fused = std::get<Kernel>(make());
  fused.name = "fused";
  AlgorithmCache cache(folder.path("algorithms.tsv"));
  const EngineCheck check{cache, kKey, false, {ops::BatchNormGrad::kVariance}};
  EXPECT_EQ(std::get<Kernel>(CheckedKernel(request, check, fused, make)).name, "fused");
}

INSTANTIATE_TEST_SUITE_P(Types, CudaEngineCheckTest,
                         ::testing::Values(DType::kFloat, DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace caffe::cuda
