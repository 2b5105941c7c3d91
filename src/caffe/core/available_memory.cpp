#include "caffe/core/available_memory.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include "caffe/core/control_groups.hpp"

namespace caffe {
namespace {

// A file with one number; nothing for "max" or if there is no such file.
std::optional<uint64_t> NumberIn(const std::filesystem::path& file) {
  std::istringstream text(TextOfFile(file));
  uint64_t number = 0;
  if (text >> number) return number;
  return std::nullopt;
}

// Sum of the entries with these names in lines of names and numbers, or nothing if there are none.
std::optional<uint64_t> SumOf(std::string_view lines, std::initializer_list<const char*> names) {
  std::istringstream text{std::string(lines)};
  std::optional<uint64_t> sum;
  for (std::string line; std::getline(text, line);) {
    std::istringstream entry(line);
    std::string name;
    uint64_t number = 0;
    if (entry >> name >> number && std::find(names.begin(), names.end(), name) != names.end())
      sum = sum.value_or(0) + number;
  }
  return sum;
}

uint64_t Difference(uint64_t a, uint64_t b) {
  return a - std::min(a, b);
}

void Lower(uint64_t* value, std::optional<uint64_t> limit, uint64_t used) {
  if (limit) *value = std::min(*value, Difference(*limit, used));
}

struct Available {
  uint64_t memory, swap;
};

// Pages of files count as used by a group, but are given back.
void LimitByGroup(const std::filesystem::path& group, Available* available) {
  const std::string statistics = TextOfFile(group / "memory.stat");
  if (const auto used = NumberIn(group / "memory.current")) {
    const uint64_t cache = SumOf(statistics, {"active_file", "inactive_file"}).value_or(0);
    Lower(&available->memory, NumberIn(group / "memory.max"), Difference(*used, cache));
    Lower(&available->swap, NumberIn(group / "memory.swap.max"),
          NumberIn(group / "memory.swap.current").value_or(0));
  } else if (const auto used_1 = NumberIn(group / "memory.usage_in_bytes")) {
    const uint64_t cache =
        SumOf(statistics, {"total_active_file", "total_inactive_file"}).value_or(0);
    Lower(&available->memory, NumberIn(group / "memory.limit_in_bytes"),
          Difference(*used_1, cache));
  }
}

}  // namespace

std::optional<uint64_t> AvailableMemoryOf(std::string_view memory_info, std::string_view groups,
                                          const std::filesystem::path& root) {
  const auto memory = SumOf(memory_info, {"MemAvailable:"});  // KiB
  if (!memory) return std::nullopt;
  Available available{*memory * 1024, SumOf(memory_info, {"SwapFree:"}).value_or(0) * 1024};
  VisitControlGroups(groups, root, "memory", [&available](const std::filesystem::path& group) {
    LimitByGroup(group, &available);
  });
  return available.memory + available.swap;
}

std::optional<uint64_t> AvailableMemory() {
  return AvailableMemoryOf(TextOfFile("/proc/meminfo"), TextOfFile("/proc/self/cgroup"),
                           "/sys/fs/cgroup");
}

}  // namespace caffe
