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

// The command to use for a name that other tools use; empty for unknown names.
std::string HintFor(const std::string& name) {
  static const std::map<std::string, std::string> hints = {
      {"finetune", "caffe train --weights=FILE"},
      {"predict", "caffe classify, caffe detect, or caffe segment"},
      {"quantize", "caffe calibrate"},
      {"resume", "caffe train --auto_resume"},
  };
  const auto found = hints.find(name);
  return found == hints.end() ? "" : found->second;
}

}  // namespace

const char* HeadingOf(Purpose purpose) {
  switch (purpose) {
    case Purpose::kTrain:
      return "Train a model";
    case Purpose::kUse:
      return "Use and score it";
    case Purpose::kData:
      return "Make and check databases";
    case Purpose::kConvert:
      return "Convert models";
    case Purpose::kInspect:
      return "Look inside";
    case Purpose::kProgram:
      break;
  }
  return "This program";
}

const std::map<std::string, CommandEntry>& Commands() {
  return MutableCommands();
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Commands()) names.push_back(name);
  return names;
}

std::vector<std::string> CommandsOfGroup(const std::string& group) {
  std::vector<std::string> names;
  if (Commands().contains(group)) return names;  // data-import is one, and no group
  for (const auto& [name, entry] : Commands()) {
    if (name.starts_with(group + "-")) names.push_back(name);
  }
  return names;
}

std::string GroupOf(const std::string& name) {
  const std::string group = name.substr(0, name.find('-'));
  return group != name && CommandsOfGroup(group).size() > 1 ? group : "";
}

std::string WordsOf(const std::string& name) {
  std::string words = name;
  if (const std::string group = GroupOf(name); !group.empty()) words[group.size()] = ' ';
  return words;
}

void RequireCommand(const std::string& name) {
  if (Commands().count(name) > 0) return;
  const std::string action = "Unknown action: " + WordsOf(name);
  if (const std::string hint = HintFor(name); !hint.empty())
    throw InvalidArgument(action + "; that is " + hint);
  const std::string near = NearestName(name, CommandNames());
  if (!near.empty()) throw InvalidArgument(action + "; did you mean '" + WordsOf(near) + "'?");
  std::string list;
  for (const std::string& known : CommandNames())
    list += (list.empty() ? "" : ", ") + WordsOf(known);
  throw InvalidArgument(action + "; available caffe actions: " + list);
}

void RegisterCommand(const std::string& name, const CommandEntry& entry) {
  const bool is_new = MutableCommands().emplace(name, entry).second;
  CAFFE_ASSERT(is_new, "command '", name, "' is registered twice");
}

}  // namespace caffe::tools
