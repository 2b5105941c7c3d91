// How many processors this process may use.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "caffe/common.hpp"

namespace caffe {

// Those that it may run on (sched_getaffinity), and no more than its control groups give it time
// for: `docker run --cpus=2`, a limit of Kubernetes. 1 or more.
CAFFE_EXPORT int UsableProcessors();

// How many processors' time the control groups leave this process; nothing where they do not say.
std::optional<double> ProcessorTime();

// The least limit, in processors, of control groups and all above them; nothing where there is
// none. `groups`: /proc/self/cgroup's text. `root`: where they are mounted, as version 1 (Linux,
// Documentation/scheduler/sched-bwc) or 2 (Documentation/admin-guide/cgroup-v2, "cpu.max").
std::optional<double> ProcessorsOfGroups(std::string_view groups,
                                         const std::filesystem::path& root);

}  // namespace caffe
