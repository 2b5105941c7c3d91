// The text of `caffe help`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace caffe::tools {

// Lists the commands, one per line.
std::string FormatCommands();
// Lists the commands of one group, such as "data".
std::string FormatGroup(const std::string& group);

// Describes a command, its options with their defaults, and examples. `app` has the options of the
// command `name`.
std::string FormatCommandHelp(const std::string& name, const CLI::App& app);

}  // namespace caffe::tools
