// Counts the processors that this process may use.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "caffe/common.hpp"

namespace caffe {

// Number of processors that the process may run on (sched_getaffinity), limited by the CPU time of
// its control groups (`docker run --cpus=2`, a Kubernetes limit). At least 1.
CAFFE_EXPORT int UsableProcessors();

// CPU time that the control groups allow this process, in processors; nothing if unlimited.
std::optional<double> ProcessorTime();

// The smallest limit, in processors, of the control groups and all their ancestors; nothing if
// there is none (version 1: Linux, Documentation/scheduler/sched-bwc; 2: "cpu.max"). `groups` and
// `root`: see VisitControlGroups().
std::optional<double> ProcessorsOfGroups(std::string_view groups,
                                         const std::filesystem::path& root);

}  // namespace caffe
