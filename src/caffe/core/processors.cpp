#include "caffe/core/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

namespace caffe {
namespace {

std::string TextOfFile(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

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

// Mount point of the controllers "cpu,cpuacct" in "4:cpu,cpuacct:/docker/1234", or of version 2's
// "0::/user.slice".
std::optional<std::filesystem::path> MountOf(const std::string& controllers,
                                             const std::filesystem::path& root) {
  if (controllers.empty()) return root;
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name != "cpu") continue;
    // Some systems list the controllers in another order than the folder's name; then "cpu" is a
    // link to that folder.
    std::error_code ignored;
    return std::filesystem::exists(root / controllers, ignored) ? root / controllers : root / name;
  }
  return std::nullopt;
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
  std::istringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto mount = MountOf(line.substr(first + 1, second - first - 1), root);
    if (!mount) continue;
    // In a container the names may be the host's, while the container sees only its own group, as
    // the root.
    std::filesystem::path group =
        std::filesystem::path(line.substr(second + 1)).relative_path().lexically_normal();
    while (true) {
      const auto limit = LimitOfFolder(*mount / group);
      if (limit && (!least || *limit < *least)) least = limit;
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
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
