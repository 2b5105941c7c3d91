#include "caffe/core/control_groups.hpp"

#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

namespace caffe {
namespace {

// Mount point of the controllers "cpu,cpuacct" in "4:cpu,cpuacct:/docker/1234", or of version 2's
// "0::/user.slice".
std::optional<std::filesystem::path> MountOf(const std::string& controllers,
                                             const std::filesystem::path& root,
                                             std::string_view controller) {
  if (controllers.empty()) return root;
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name != controller) continue;
    // Some systems list the controllers in another order than the folder's name; then "cpu" is a
    // link to that folder.
    std::error_code ignored;
    return std::filesystem::exists(root / controllers, ignored) ? root / controllers : root / name;
  }
  return std::nullopt;
}

}  // namespace

std::string TextOfFile(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

void VisitControlGroups(std::string_view groups, const std::filesystem::path& root,
                        std::string_view controller,
                        const std::function<void(const std::filesystem::path& folder)>& visit) {
  std::istringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto mount = MountOf(line.substr(first + 1, second - first - 1), root, controller);
    if (!mount) continue;
    // In a container the names may be the host's, while the container sees only its own group, as
    // the root.
    std::filesystem::path group =
        std::filesystem::path(line.substr(second + 1)).relative_path().lexically_normal();
    while (true) {
      visit(*mount / group);
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
}

}  // namespace caffe
