#include "caffe/cuda/algorithm_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <regex>
#include <sstream>

#include "caffe/device/device_fault.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/gemm.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::cuda {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kNever = std::numeric_limits<double>::infinity();

class ChooseAlgorithmTest : public ::testing::Test {
 protected:
  // The chosen name if the candidates take these times.
  std::string Choose(const std::vector<double>& seconds, const std::string& key = "gemm") {
    AlgorithmCache cache(file_);  // like a separate process
    return names_[ChooseAlgorithm(cache, key, names_, [&](const MayTryAlgorithm&) {
      ++timings_;
      return seconds;
    })];
  }

  testing::TemporaryFolder folder_;
  const std::string file_ = folder_.path("algorithms.tsv");
  std::vector<std::string> names_ = {"alg0", "alg1", "alg2"};
  int timings_ = 0;
};

TEST_F(ChooseAlgorithmTest, TakesTheFastest) {
  EXPECT_EQ(Choose({3, 2, 4}), "alg1");
  EXPECT_EQ(Choose({3, 3, 3}, "equal times"), "alg0");
}

TEST_F(ChooseAlgorithmTest, TheNextProcessTakesTheSameWithoutTiming) {
  EXPECT_EQ(Choose({3, 2, 1}), "alg2");
  EXPECT_EQ(Choose({1, 2, 3}), "alg2");
  EXPECT_EQ(timings_, 1);
}

TEST_F(ChooseAlgorithmTest, TheHeuristicsOrderMayChange) {
  Choose({3, 2, 1});
  std::swap(names_[0], names_[2]);
  EXPECT_EQ(Choose({}), "alg2");
  EXPECT_EQ(timings_, 1);
}

TEST_F(ChooseAlgorithmTest, EachKeyIsTimed) {
  EXPECT_EQ(Choose({3, 2, 1}, "gemm"), "alg2");
  EXPECT_EQ(Choose({1, 2, 3}, "conv"), "alg0");
  EXPECT_EQ(timings_, 2);
}

TEST_F(ChooseAlgorithmTest, AKnownAlgorithmThatIsNoCandidateIsTimedAnew) {
  AlgorithmCache(file_).Store("gemm", "alg9");
  EXPECT_EQ(Choose({3, 1, 2}), "alg1");
  EXPECT_EQ(Choose({1, 2, 3}), "alg1");
  EXPECT_EQ(timings_, 1);
}

TEST_F(ChooseAlgorithmTest, OneCandidateIsNotTimed) {
  names_ = {"alg0"};
  EXPECT_EQ(Choose({1}), "alg0");
  EXPECT_EQ(timings_, 0);
}

TEST_F(ChooseAlgorithmTest, ThoseThatDoNotRunAreNotTaken) {
  EXPECT_EQ(Choose({kNever, 2, kNever}), "alg1");
}

// No memory, or no algorithm runs: the heuristics' first is used, and the next process tries again.
TEST_F(ChooseAlgorithmTest, LearnsNothingWhereNothingCouldBeTimed) {
  EXPECT_EQ(Choose({}), "alg0");
  EXPECT_EQ(Choose({kNever, kNever, kNever}), "alg0");
  EXPECT_EQ(Choose({3, 2, 1}), "alg2");
  EXPECT_EQ(timings_, 3);
}

// If an algorithm ended three starts, it does not get a fourth.
TEST_F(ChooseAlgorithmTest, WhereNothingCouldBeTimedOneThatCrashedIsNotTaken) {
  std::ofstream(file_) << "gemm\t?alg0\telsewhere\t1\tstart\t1000\t2\n";
  EXPECT_EQ(Choose({}), "alg1");
}

TEST_F(ChooseAlgorithmTest, OneThatCostsTheDeviceIsLeftOutAtTheNextStart) {
  AlgorithmCache cache(file_);
  EXPECT_THROW(ChooseAlgorithm(cache, "gemm", names_,
                               [&](const MayTryAlgorithm& may_try) -> std::vector<double> {
                                 may_try(0);
                                 may_try(1);
                                 throw DeviceFault("lost");
                               }),
               DeviceFault);
  EXPECT_TRUE(AlgorithmCache(file_).HasCrashed("gemm", "alg1"));
  EXPECT_FALSE(AlgorithmCache(file_).HasCrashed("gemm", "alg0"));
}

// No algorithm runs, but the process continues and ends normally.
TEST_F(ChooseAlgorithmTest, WhereNothingRunsNothingHasCrashed) {
  AlgorithmCache cache(file_);
  ChooseAlgorithm(cache, "gemm", names_, [&](const MayTryAlgorithm& may_try) {
    for (size_t i = 0; i < names_.size(); ++i) EXPECT_TRUE(may_try(i));
    return std::vector<double>(names_.size(), kNever);
  });
  std::stringstream lines;
  lines << std::ifstream(file_).rdbuf();
  const std::regex process("(\\?[^\t]*\t[^\t]*\t)[^\t]*\t[^\t]*");  // one that has ended
  const std::string text = lines.str();
  std::ofstream(file_) << std::regex_replace(text, process, "$011073741824\tgone");
  for (const std::string& name : names_)
    EXPECT_FALSE(AlgorithmCache(file_).HasCrashed("gemm", name));
}

// A device whose clock the test advances.
class ClockEvent final : public Event {
 public:
  void Synchronize() override {
    if (is_busy != nullptr) *is_busy = false;
  }
  bool IsReached() override { return true; }
  double SecondsSince(const Event& earlier) const override {
    return seconds - static_cast<const ClockEvent&>(earlier).seconds;
  }
  double seconds = 0;
  bool* is_busy = nullptr;
};

class ClockStream final : public Stream {
 public:
  void* native() const override { return nullptr; }
  void Synchronize() override {
    if (is_lost) throw DeviceFault("lost");
  }
  void Record(Event& event) override {
    Synchronize();
    auto& placed = static_cast<ClockEvent&>(event);
    placed.seconds = clock;
    placed.is_busy = &is_busy;
    recorded_idle += !is_busy;
  }
  void KeepBusy(double) override { is_busy = true; }
  void Wait(const Event&) override {}
  void CopyFromHost(void*, const void*, size_t) override {}
  void CopyToHost(void*, const void*, size_t) override {}
  void FillZero(void*, size_t) override {}
  void Copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  double clock = 0;
  bool is_lost = false;
  bool is_busy = false;
  int recorded_idle = 0;  // events that were placed while the device was idle
};

class ClockDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }  // all its events are timed
  std::string description() const override { return "a clock"; }
  int num_threads() const override { return 1; }
  std::shared_ptr<void> Allocate(size_t bytes) override {
    if (bytes > memory_bytes) throw DeviceError("no memory");
    return std::shared_ptr<void>(std::calloc(std::max<size_t>(bytes, 1), 1), std::free);
  }
  bool is_host_accessible() const override { return true; }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    std::memcpy(host, device, bytes);
  }
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    std::memcpy(device, host, bytes);
  }
  void Synchronize() override {}
  Stream& compute_stream() override { return stream; }
  std::unique_ptr<Event> MakeEvent() override { return std::make_unique<ClockEvent>(); }
  bool is_described() const override { return described; }

  ClockStream stream;
  size_t memory_bytes = 1 << 20;
  bool described = false;
};

std::vector<double> Time(Device& device, const std::vector<TimedBuffer>& buffers, size_t count,
                         const AlgorithmLaunch& launch) {
  return TimeAlgorithms(device, buffers, count, launch, [](size_t) { return true; });
}

TEST(TimeAlgorithmsTest, CountsTheBestRunButNotTheFirst) {
  ClockDevice device;
  const std::vector<std::vector<double>> runs = {{1, 7, 5, 6}, {9, 2, 3, 4}};
  std::vector<size_t> done(runs.size(), 0);
  const std::vector<double> seconds = Time(device, {}, runs.size(), [&](size_t i, auto) {
    device.stream.clock += runs[i].at(done[i]++);
    return true;
  });
  EXPECT_THAT(seconds, ElementsAre(5, 2));
  EXPECT_THAT(done, Each(4));
}

// An idle device would begin at once, and then wait while the host launches the rest.
TEST(TimeAlgorithmsTest, TheDeviceIsBusyWhileTheHostLaunches) {
  ClockDevice device;
  int launched = 0;
  Time(device, {}, 2, [&](size_t, auto) { return ++launched > 0; });
  EXPECT_EQ(launched, 8);
  EXPECT_EQ(device.stream.recorded_idle, 0);
}

TEST(TimeAlgorithmsTest, AlgorithmsAreTimedInTurn) {
  ClockDevice device;
  std::vector<size_t> order;
  Time(device, {}, 2, [&](size_t i, auto) {
    order.push_back(i);
    return true;
  });
  EXPECT_THAT(order, ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
}

TEST(TimeAlgorithmsTest, AnAlgorithmThatDoesNotRunTakesForever) {
  ClockDevice device;
  const std::vector<double> seconds = Time(device, {}, 2, [&](size_t i, auto) {
    device.stream.clock += 1;
    return i == 1;
  });
  EXPECT_THAT(seconds, ElementsAre(kNever, 1));
}

// The cache names it as the last one that was tried, and the next process leaves it out.
TEST(TimeAlgorithmsTest, OneThatCostsTheDeviceIsTheLast) {
  ClockDevice device;
  std::vector<size_t> tried;
  EXPECT_THROW(TimeAlgorithms(
                   device, {}, 3, [&](size_t i, auto) { return !(device.stream.is_lost = i == 1); },
                   [&](size_t i) { return tried.push_back(i), true; }),
               DeviceFault);
  EXPECT_THAT(tried, ElementsAre(0, 1));
}

TEST(TimeAlgorithmsTest, OneThatCostsTheDeviceLaterIsTheLast) {
  ClockDevice device;
  std::vector<size_t> tried;
  int launched = 0;
  EXPECT_THROW(
      TimeAlgorithms(
          device, {}, 3, [&](size_t, auto) { return !(device.stream.is_lost = ++launched == 5); },
          [&](size_t i) { return tried.push_back(i), true; }),
      DeviceFault);
  EXPECT_THAT(tried, ElementsAre(0, 1, 2, 0, 1));
}

TEST(TimeAlgorithmsTest, GivesEachItsBuffers) {
  ClockDevice device;
  Time(device, {{16, {}}, {0, {}}, {4, {}}}, 1, [&](size_t, std::span<void* const> buffers) {
    EXPECT_THAT(buffers, ::testing::SizeIs(3));
    EXPECT_THAT(buffers, Each(::testing::NotNull()));
    return true;
  });
}

TEST(TimeAlgorithmsTest, WithoutMemoryNothingIsTried) {
  ClockDevice device;
  device.memory_bytes = 100;
  EXPECT_THAT(Time(device, {{16, {}}, {200, {}}}, 1,
                   [](size_t, auto) {
                     ADD_FAILURE() << "launched";
                     return true;
                   }),
              IsEmpty());
}

TEST(TimeAlgorithmsTest, WhatMayNotBeTriedIsNot) {
  ClockDevice device;
  std::vector<size_t> launched;
  const auto seconds = TimeAlgorithms(
      device, {}, 3,
      [&](size_t i, auto) {
        launched.push_back(i);
        device.stream.clock += 1;
        return true;
      },
      [](size_t i) { return i != 1; });
  EXPECT_THAT(seconds, ElementsAre(1, kNever, 1));
  EXPECT_THAT(launched, Not(::testing::Contains(1)));
}

// Expects standard normal numbers: zeros are multiplied faster than other numbers.
template <typename T>
void ExpectNormal(std::span<const T> numbers) {
  double sum = 0, squares = 0;
  for (const T number : numbers) {
    const double value = static_cast<float>(number);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / static_cast<double>(numbers.size()), 0, 0.01);
  EXPECT_NEAR(squares / static_cast<double>(numbers.size()), 1, 0.01);
}

TEST(TimeAlgorithmsTest, OperandsAreNormalNoise) {
  ClockDevice device;
  device.memory_bytes = 16 << 20;
  constexpr size_t kCount = (1 << 20) + 12345;  // more than are drawn
  Time(device, {{kCount * 4, DType::kFloat}, {kCount * 2, DType::kBFloat16}, {64, {}}}, 1,
       [&](size_t, std::span<void* const> buffers) {
         const std::span floats(static_cast<const float*>(buffers[0]), kCount);
         const std::span halves(static_cast<const bfloat16*>(buffers[1]), kCount);
         double product = 0;
         for (size_t i = 0; i < kCount; ++i)
           product += static_cast<double>(floats[i]) * static_cast<float>(halves[i]);
         EXPECT_NEAR(product / kCount, 0, 0.01) << "operands are not each other's copies";
         ExpectNormal(floats);
         ExpectNormal(halves);
         EXPECT_LT(std::count(floats.begin(), floats.end(), 0.f), 100);
         return true;
       });
}

// The seconds of algorithms that take one second each. `algorithm` decides what each one writes
// into a float output; scratch memory has the same size.
std::vector<double> TimeResults(size_t count,
                                const std::function<void(size_t, std::span<float> output,
                                                         std::span<float> scratch)>& algorithm) {
  constexpr size_t kElements = 1000;
  ClockDevice device;
  return Time(device,
              {{kElements * sizeof(float), DType::kFloat, true}, {kElements * sizeof(float), {}}},
              count, [&](size_t i, std::span<void* const> buffers) {
                device.stream.clock += 1;
                algorithm(i, {static_cast<float*>(buffers[0]), kElements},
                          {static_cast<float*>(buffers[1]), kElements});
                return true;
              });
}

TEST(TimeAlgorithmsTest, OneThatDisagreesWithMostDoesNotRun) {
  EXPECT_THAT(
      TimeResults(3, [](size_t i, auto output,
                        auto) { std::ranges::fill(output, i == 0 ? 1.2f : 1 + 0.001f * i); }),
      ElementsAre(kNever, 1, 1));
}

TEST(TimeAlgorithmsTest, WhatIsNotWrittenIsNoResult) {
  EXPECT_THAT(TimeResults(2, [](size_t i, auto output,
                                auto) { std::ranges::fill(output.subspan(i == 0 ? 1 : 0), 1.f); }),
              ElementsAre(kNever, 1));
}

// In a net, other kernels leave values there.
TEST(TimeAlgorithmsTest, OneThatReadsWhatItFindsInScratchMemoryDoesNotRun) {
  EXPECT_THAT(TimeResults(2,
                          [](size_t i, auto output, auto scratch) {
                            if (i == 1) std::ranges::fill(scratch, 0.f);
                            std::ranges::transform(scratch, output.begin(),
                                                   [](float value) { return value + 1; });
                          }),
              ElementsAre(kNever, 1));
}

TEST(TimeAlgorithmsTest, WhereNoResultHasOnlyNumbersAllAreTimed) {
  EXPECT_THAT(TimeResults(2, [](size_t, auto output, auto) { std::ranges::fill(output, NAN); }),
              ElementsAre(1, 1));
}

// A product as it is requested from a kernel's factory.
struct AskedProduct {
  ops::Gemm gemm{.rows = 2, .columns = 4, .inner = 3};
  DType type = DType::kFloat;
  bool has_bias = false;
  KernelSettings settings = {};

  template <typename Answer>
  auto Ask(Device& device, Answer answer) const {
    const auto operand = [&](Shape shape, bool present = true) {
      OperandDesc desc;
      desc.shape = std::move(shape);
      desc.dtype = type;
      desc.present = present;
      return desc;
    };
    const auto matrix = [&](int64_t lines, int64_t line, bool transposed) {
      return operand(transposed ? Shape({line, lines}) : Shape({lines, line}));
    };
    const std::vector<OperandDesc> inputs = {matrix(gemm.rows, gemm.inner, gemm.transpose_a),
                                             matrix(gemm.inner, gemm.columns, gemm.transpose_b),
                                             operand({gemm.columns}, has_bias)};
    const std::vector<OperandDesc> outputs = {matrix(gemm.rows, gemm.columns, false)};
    return answer(KernelRequest{gemm, inputs, outputs, device, settings});
  }
  std::string Key() const {
    const std::shared_ptr<Device> chip = DescribeDevice(DeviceKind::kCuda, "H200");
    return Ask(*chip, [&](const KernelRequest& request) {
      return AlgorithmKey(CudaDeviceOf(request), "cublasLt", 130000, ProblemOf(request));
    });
  }
  bool IsTimed(Device& device) const { return Ask(device, AreAlgorithmsTimed); }
};

TEST(AlgorithmKeyTest, NamesAllThatATimingHoldsFor) {
  AskedProduct asked;
  asked.gemm.transpose_b = true;
  EXPECT_EQ(
      asked.Key(),
      "H200|cublasLt 130000|Gemm 2x3 * 3x4(T) (2x3 float plain, 4x3 float plain, none) -> (2x4 "
      "float plain)");
}

TEST(AlgorithmKeyTest, OtherProblemsHaveOtherKeys) {
  const AskedProduct plain;
  std::vector<AskedProduct> others(5);
  others[0].gemm.transpose_a = true;
  others[1].gemm.transpose_b = true;
  others[2].type = DType::kBFloat16;
  others[3].has_bias = true;
  others[4].settings.strict_fp32 = true;
  std::vector<std::string> keys = {plain.Key()};
  for (const AskedProduct& other : others) {
    EXPECT_THAT(keys, Not(::testing::Contains(other.Key())));
    keys.push_back(other.Key());
  }
  EXPECT_EQ(plain.Key(), AskedProduct().Key());
}

TEST(AlgorithmKeyTest, ChipsAndVersionsShareNothing) {
  const auto key = [](const char* chip, size_t version) {
    const std::shared_ptr<Device> device = DescribeDevice(DeviceKind::kCuda, chip);
    return AlgorithmKey(static_cast<CudaDevice&>(*device), "cudnn", version, "conv");
  };
  EXPECT_NE(key("H200", 91300), key("A100", 91300));
  EXPECT_NE(key("H200", 91300), key("H200", 91301));
}

TEST(AreAlgorithmsTimedTest, OnADeviceThatIsThere) {
  ClockDevice device;
  EXPECT_TRUE(AskedProduct().IsTimed(device));
  device.described = true;
  EXPECT_FALSE(AskedProduct().IsTimed(device));
}

TEST(AreAlgorithmsTimedTest, NotWhereEachRunIsToHaveTheSameBits) {
  ClockDevice device;
  AskedProduct asked;
  asked.settings.deterministic = true;
  EXPECT_FALSE(asked.IsTimed(device));
}

TEST(AreAlgorithmsTimedTest, NotWhereTheEnvironmentForbidsIt) {
  ClockDevice device;
  setenv("CAFFE_TIME_ALGORITHMS", "0", 1);
  EXPECT_FALSE(AskedProduct().IsTimed(device));
  setenv("CAFFE_TIME_ALGORITHMS", "1", 1);
  EXPECT_TRUE(AskedProduct().IsTimed(device));
  unsetenv("CAFFE_TIME_ALGORITHMS");
}

class ProductOnGpuTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    device_ = testing::DeviceOrNull(DeviceKind::kCuda);
    if (device_ == nullptr) GTEST_SKIP() << "no cuda device";
    asked_.gemm = {.rows = 64, .columns = 512, .inner = 800, .transpose_b = true};
    asked_.type = GetParam();
    asked_.has_bias = true;
  }
  // The algorithms of cuBLASLt's kernel, the chosen one first.
  std::vector<std::string> Algorithms() const {
    return asked_.Ask(*device_, [&](const KernelRequest& request) -> std::vector<std::string> {
      for (const KernelCandidate& candidate :
           KernelRegistry::Get().Candidates(DeviceKind::kCuda, typeid(ops::Gemm))) {
        if (candidate.name != "gemm-cublaslt") continue;
        const KernelOrRefusal answer = candidate.factory(request);
        if (const Refusal* refusal = std::get_if<Refusal>(&answer)) {
          ADD_FAILURE() << refusal->reason;
          return {};
        }
        return std::get<Kernel>(answer).algorithms;
      }
      return {};
    });
  }

  Device* device_ = nullptr;
  AskedProduct asked_;
};

TEST_P(ProductOnGpuTest, TheFastestAlgorithmIsTakenAgain) {
  const std::vector<std::string> first = Algorithms();
  ASSERT_THAT(first, Not(IsEmpty()));
  EXPECT_LE(first.size(), kTimedAlgorithms);
  EXPECT_EQ(Algorithms(), first);
}

TEST_P(ProductOnGpuTest, DeterministicTakesTheHeuristicsFirst) {
  asked_.settings.deterministic = true;
  EXPECT_THAT(Algorithms(), ::testing::SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Gpu, ProductOnGpuTest,
                         ::testing::Values(DType::kFloat, DType::kFloat16, DType::kBFloat16,
                                           DType::kDouble),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace caffe::cuda
