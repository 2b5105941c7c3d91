#include "caffe/core/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <thread>

#include "caffe/core/control_groups.hpp"

namespace caffe {
namespace {

// Parses "max 100000" or "150000 100000": quota and period, both in microseconds.
std::optional<double> LimitOf(const std::string& quota_and_period) {
  std::istringstream text(quota_and_period);
  double quota = 0, period = 0;
  if (text >> quota >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> LimitOfFolder(const std::filesystem::path& folder) {
  if (const auto limit = LimitOf(TextOfFile(folder / "cpu.max"))) return limit;
  return LimitOf(TextOfFile(folder / "cpu.cfs_quota_us") + " " +
                 TextOfFile(folder / "cpu.cfs_period_us"));
}

int ProcessorsOfAffinity() {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof(usable), &usable) == 0) return CPU_COUNT(&usable);
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

}  // namespace

std::optional<double> ProcessorsOfGroups(std::string_view groups,
                                         const std::filesystem::path& root) {
  std::optional<double> least;
  VisitControlGroups(groups, root, "cpu", [&least](const std::filesystem::path& folder) {
    const auto limit = LimitOfFolder(folder);
    if (limit && (!least || *limit < *least)) least = limit;
  });
  return least;
}

std::optional<double> ProcessorTime() {
  static const std::optional<double> limit =
      ProcessorsOfGroups(TextOfFile("/proc/self/cgroup"), "/sys/fs/cgroup");
  return limit;
}

int UsableProcessors() {
  const int processors = ProcessorsOfAffinity();
  const double time = std::ceil(ProcessorTime().value_or(processors));
  return static_cast<int>(std::clamp<double>(time, 1, processors));
}

}  // namespace caffe
