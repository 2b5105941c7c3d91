// The commands of the program `caffe`. Each has a file of its own, which registers it; adding one
// edits no list.
#pragma once

#include <map>
#include <string>

namespace caffe::tools {

struct Command {
  // `argument` is the word after the command, or empty.
  using Run = void (*)(const std::string& argument);

  const char* help = "";  // one line for the list of commands
  Run run = nullptr;      // throws on failure
  bool takes_argument = false;
};

// By name, sorted.
const std::map<std::string, Command>& Commands();

struct CommandRegistrar {
  CommandRegistrar(const std::string& name, const Command& command);
};

}  // namespace caffe::tools
