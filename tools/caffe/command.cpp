#include "tools/caffe/command.hpp"

#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

std::map<std::string, Command>& MutableCommands() {
  static std::map<std::string, Command> commands;
  return commands;
}

}  // namespace

const std::map<std::string, Command>& Commands() {
  return MutableCommands();
}

CommandRegistrar::CommandRegistrar(const std::string& name, const Command& command) {
  const bool is_new = MutableCommands().emplace(name, command).second;
  CAFFE_ASSERT(is_new, "command '", name, "' is registered twice");
}

}  // namespace caffe::tools
