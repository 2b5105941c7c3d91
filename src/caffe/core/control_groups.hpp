// The control groups that limit this process (Linux, Documentation/admin-guide/cgroup-v2 and
// cgroup-v1).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace caffe {

// Calls `visit` with the folder of each group that this process is in for `controller` ("cpu",
// "memory"), and of each group above it; folders may not exist. `groups`: the text of
// /proc/self/cgroup. `root`: where groups are mounted, as version 1 or 2.
void VisitControlGroups(std::string_view groups, const std::filesystem::path& root,
                        std::string_view controller,
                        const std::function<void(const std::filesystem::path& folder)>& visit);

// Empty if it cannot be read.
std::string TextOfFile(const std::filesystem::path& file);

}  // namespace caffe
