// glog's flags, which scripts for Caffe use: --logtostderr, --log_dir, --minloglevel, --v, ...
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace caffe::tools {

// Declares them, hidden from help, and sets Caffe's defaults: to standard error, without a year.
void AddLogFlags(CLI::App& app);

// Starts logging as the flags say. --log_dir writes files beside standard error.
void StartLogging(const char* program);

// What is wrong where --log_dir is no folder that can be written to; empty else. Files are then not
// asked for any more, and the log goes to standard error alone.
std::string DropBadLogDir();

}  // namespace caffe::tools
