#include "caffe/cuda/algorithm_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "caffe/cuda/noise.hpp"
#include "caffe/cuda/samples.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/device/launch_timer.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

constexpr int kTimedRuns = 3;
// Comparisons use kStretches ranges of kStretch elements of each output.
constexpr int64_t kStretches = 4, kStretch = 1 << 14;
constexpr double kNever = std::numeric_limits<double>::infinity();

std::string TextOf(std::span<const OperandDesc> operands) {
  std::string text;
  for (const OperandDesc& operand : operands) {
    text += text.empty() ? "" : ", ";
    text += operand.present ? StrCat(operand.shape, " ", caffe::Name(operand.dtype), " ",
                                     caffe::Name(operand.layout))
                            : "none";
  }
  return text;
}

// Reveals results that an algorithm does not write, and scratch memory that it reads before
// writing.
void SpoilResults(Device& device, std::span<const TimedBuffer> buffers,
                  std::span<void* const> places) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].is_output || !buffers[i].numbers)
      FillWithNaNs(device, places[i], buffers[i].bytes);
  }
}

Results ResultsOf(Device& device, std::span<const TimedBuffer> buffers,
                  std::span<void* const> places) {
  Results results;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].is_output) continue;
    const DType type = *buffers[i].numbers;
    const auto count = static_cast<int64_t>(buffers[i].bytes / SizeOf(type));
    results.push_back(SampleOf(device, type, places[i], count, kStretches, kStretch));
  }
  return results;
}

}  // namespace

bool AreAlgorithmsTimed(const KernelRequest& request) {
  const char* variable = std::getenv("CAFFE_TIME_ALGORITHMS");
  return !request.device.is_described() && !request.settings.deterministic &&
         (variable == nullptr || std::string_view(variable) != "0");
}

std::string ProblemOf(const KernelRequest& request) {
  return StrCat(request.op.name(), " ", request.op.Attributes(), " (", TextOf(request.inputs),
                ") -> (", TextOf(request.outputs), ")",
                request.settings.strict_fp32 ? " strict_fp32" : "");
}

std::string AlgorithmKey(const CudaDevice& device, std::string_view library, size_t version,
                         std::string_view problem) {
  return StrCat(device.chip().name, "|", library, " ", version, "|", problem);
}

size_t ChooseAlgorithm(AlgorithmCache& cache, const std::string& key,
                       std::span<const std::string> names, const AlgorithmTimer& timer) {
  if (names.size() <= 1) return 0;
  if (const std::optional<std::string> known = cache.Find(key)) {
    const auto found = std::find(names.begin(), names.end(), *known);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
  }
  std::optional<size_t> tried;
  const auto may_try = [&](size_t i) {
    const bool may = cache.Try(key, names[i]);
    if (may) tried = i;
    return may;
  };
  std::vector<double> seconds;
  try {
    seconds = timer(may_try);
  } catch (const DeviceFault&) {
    if (tried) cache.LeaveOut(key, names[*tried]);
    throw;
  }
  const auto least = std::min_element(seconds.begin(), seconds.end());
  if (least == seconds.end() || std::isinf(*least)) {
    if (tried) cache.GiveUp(key);
    const auto first = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return !cache.HasCrashed(key, name);
    });
    return first == names.end() ? 0 : static_cast<size_t>(first - names.begin());
  }
  const size_t fastest = static_cast<size_t>(least - seconds.begin());
  cache.Store(key, names[fastest]);
  return fastest;
}

std::vector<double> TimeAlgorithms(Device& device, std::span<const TimedBuffer> buffers,
                                   size_t count, const AlgorithmLaunch& launch,
                                   const MayTryAlgorithm& may_try) {
  device.MakeCurrent();
  std::vector<std::shared_ptr<void>> memory;
  std::vector<void*> places;
  try {
    for (const TimedBuffer& buffer : buffers) {
      memory.push_back(device.Allocate(buffer.bytes));
      places.push_back(memory.back().get());
    }
  } catch (const DeviceError&) {
    return {};
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    // A net's kernels leave data in the scratch memory that they share, too.
    FillWithNoise(device, buffers[i].numbers.value_or(DType::kFloat), places[i], buffers[i].bytes,
                  i);
  }
  device.Synchronize();  // reports errors of earlier work here
  LaunchTimer timer(device);
  // Throws DeviceFault if an algorithm breaks the device, before another one is tried.
  const auto time = [&](size_t algorithm) {
    bool runs = false;
    if (!may_try(algorithm)) return kNever;
    const double seconds = timer.Time([&] { runs = launch(algorithm, places); });
    return runs ? seconds : kNever;
  };
  std::vector<std::optional<Results>> results(count);
  for (size_t algorithm = 0; algorithm < count; ++algorithm) {
    SpoilResults(device, buffers, places);
    if (time(algorithm) != kNever) results[algorithm] = ResultsOf(device, buffers, places);
  }
  const std::vector<bool> agree = Agreeing(std::move(results));
  std::vector<size_t> running;
  for (size_t algorithm = 0; algorithm < count; ++algorithm) {
    if (agree[algorithm]) running.push_back(algorithm);
  }
  // Alternates between the algorithms, because the GPU clock rises in the first milliseconds.
  std::vector<double> seconds(count, kNever);
  for (int run = 0; run < kTimedRuns; ++run) {
    for (const size_t algorithm : running)
      seconds[algorithm] = std::min(seconds[algorithm], time(algorithm));
  }
  return seconds;
}

}  // namespace caffe::cuda
