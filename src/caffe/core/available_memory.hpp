// The host memory that this process can still take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "caffe/common.hpp"

namespace caffe {

// Bytes that this process can take before the system ends processes: what is free, used as cache
// of files, or free for swapping, limited by its control groups (`docker run --memory=2g`, a
// Kubernetes limit). Nothing if the system does not say.
CAFFE_EXPORT std::optional<uint64_t> AvailableMemory();

// The same for these files. `memory_info`: the text of /proc/meminfo; `groups` and `root`: see
// VisitControlGroups().
CAFFE_EXPORT std::optional<uint64_t> AvailableMemoryOf(std::string_view memory_info,
                                                       std::string_view groups,
                                                       const std::filesystem::path& root);

}  // namespace caffe
