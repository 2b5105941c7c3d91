// The text of `caffe help`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace caffe::tools {

// The commands, a line each.
std::string FormatCommands();
// Of a group alone, such as "data".
std::string FormatGroup(const std::string& group);

// What a command does, its options with their defaults, and its examples. `app` has the options of
// the command `name`.
std::string FormatCommandHelp(const std::string& name, const CLI::App& app);

}  // namespace caffe::tools
