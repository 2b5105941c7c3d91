#include "tests/fuzz/geometry/geometry_check.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net/plan.hpp"
#include "tests/fuzz/dag/net_run.hpp"

namespace caffe::fuzz {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;
constexpr double kMostFlops = 2e7;
// The memory limit for planning.
constexpr int64_t kMostKilobytesToPlan = int64_t{3} << 20;

int64_t PeakKilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

bool IsSmall(const Net& net) {
  double flops = 0;
  for (const Node* node : net.graph().ScheduledNodes()) flops += node->Flops();
  return flops < kMostFlops && MemoryOf(net.graph(), 0).total() < kMostBytes;
}

// Checks that the error is one line that names the layer, or a layer that reads its top.
std::string FaultOf(const std::string& refusal) {
  if (refusal.find('\n') != std::string::npos) return "its error has several lines: " + refusal;
  if (refusal.find("'") == std::string::npos) return "its error names no layer: " + refusal;
  return "";
}

// An empty window's maximum is the lowest float, whose square is not finite.
constexpr double kOverflows = 1e37;

double LargestOf(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::abs(value) <= kOverflows) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// How far rounding takes an element of each array: learned from runs in double with noise on the
// weights, the inputs and the results. A dot product rounds like its weights, at each step of a
// recurrent layer, which may amplify the error from step to step.
using Rounding = std::map<std::string, double>;

Rounding LearnRounding(const NetParameter& net, const Numbers& exact) {
  Rounding rounding;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const RunResult noisy =
        RunNet(InType(net, DOUBLE), {.noise = PrecisionOf(net).relative, .noise_seed = seed});
    for (const auto& [key, values] : noisy.numbers) {
      const auto found = exact.find(key);
      if (found == exact.end() || found->second.size() != values.size()) continue;
      for (size_t i = 0; i < values.size(); ++i) {
        const double distance = std::abs(values[i] - found->second[i]);
        if (distance < kOverflows) rounding[key] = std::max(rounding[key], distance);
      }
    }
  }
  return rounding;
}

std::string DescribeDifference(const Numbers& expected, const Numbers& numbers,
                               const Rounding& rounding) {
  for (const auto& [key, values] : numbers) {
    const auto found = expected.find(key);
    if (found == expected.end()) continue;
    const std::vector<double>& exact = found->second;
    if (values.size() != exact.size())
      return StrCat(key, " has ", values.size(), " elements instead of ", exact.size());
    // Sums of up to about ten thousand products in float.
    const auto amplified = rounding.find(key);
    const double most =
        1e-2 * LargestOf(exact) + 1e-5 + (amplified == rounding.end() ? 0 : 4 * amplified->second);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::abs(exact[i]) > kOverflows) continue;
      const bool is_equal = std::isfinite(exact[i]) ? std::abs(values[i] - exact[i]) <= most
                                                    : !std::isfinite(values[i]);
      if (!is_equal) return StrCat(key, "[", i, "] is ", values[i], " instead of ", exact[i]);
    }
  }
  return "";
}

void PlantError(Numbers* numbers) {
  for (auto& [key, values] : *numbers) {
    if (key.find("data z") == std::string::npos) continue;
    const auto finite =
        std::ranges::find_if(values, [](double x) { return std::abs(x) <= kOverflows; });
    // If no element is compared, changes the number of elements.
    finite == values.end() ? values.push_back(0) : void(*finite += 1 + LargestOf(values));
    return;
  }
}

// Returns an empty text if every run computes the same.
std::string CompareRuns(const NetParameter& net, bool plants_error) {
  const RunResult exact = RunNet(InType(net, DOUBLE), {});
  for (const bool keep_all : {true, false}) {
    RunResult result = RunNet(net, {.net = {.keep_all = keep_all}});
    if (plants_error) PlantError(&result.numbers);
    const std::string what = keep_all ? "keep-all: " : "reuse: ";
    for (const RunResult* run : std::initializer_list<const RunResult*>{&exact, &result}) {
      if (!run->failure.empty()) return what + run->failure;
      if (!run->refusal.empty()) return what + "was planned, but refused to run: " + run->refusal;
    }
    std::string difference = DescribeDifference(exact.numbers, result.numbers, {});
    if (!difference.empty() && !plants_error) {
      difference =
          DescribeDifference(exact.numbers, result.numbers, LearnRounding(net, exact.numbers));
    }
    if (!difference.empty()) return what + difference;
  }
  return "";
}

}  // namespace

GeometryReport CheckGeometry(const NetParameter& net, bool plants_error) {
  GeometryReport report;
  const int64_t before = PeakKilobytes();
  try {
    const Net planned(net, {.keep_all = false, .allocate = false});
    report.was_run = IsSmall(planned);
  } catch (const InternalError& error) {
    report.finding = StrCat("internal error: ", error.what());
  } catch (const Error& error) {
    report.refusal = error.what();
    report.finding = FaultOf(report.refusal);
  } catch (const std::exception& error) {
    report.finding = StrCat("not an error of ours: ", error.what());
  }
  if (PeakKilobytes() - before > kMostKilobytesToPlan) {
    report.finding =
        StrCat("planning takes ", (PeakKilobytes() - before) / 1024, " MiB; ", report.finding);
  }
  if (report.finding.empty() && report.was_run) report.finding = CompareRuns(net, plants_error);
  return report;
}

}  // namespace caffe::fuzz
