#include "tools/caffe/command.hpp"

#include <vector>

#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

std::map<std::string, CommandEntry>& MutableCommands() {
  static std::map<std::string, CommandEntry> commands;
  return commands;
}

}  // namespace

const std::map<std::string, CommandEntry>& Commands() {
  return MutableCommands();
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Commands()) names.push_back(name);
  return names;
}

void RequireCommand(const std::string& name) {
  if (Commands().count(name) > 0) return;
  const std::vector<std::string> names = CommandNames();
  std::string group;  // "data" begins several
  for (const std::string& known : names) {
    if (known.starts_with(name + "-")) group += (group.empty() ? "" : ", ") + known;
  }
  if (!group.empty()) throw InvalidArgument("Unknown action: " + name + "; give one of " + group);
  const std::string near = NearestName(name, names);
  if (!near.empty()) {
    throw InvalidArgument("Unknown action: " + name + "; did you mean '" + near + "'?");
  }
  std::string list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  throw InvalidArgument("Unknown action: " + name + "; available caffe actions: " + list);
}

void RegisterCommand(const std::string& name, const CommandEntry& entry) {
  const bool is_new = MutableCommands().emplace(name, entry).second;
  CAFFE_ASSERT(is_new, "command '", name, "' is registered twice");
}

}  // namespace caffe::tools
