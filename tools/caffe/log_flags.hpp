// glog's flags, which scripts for Caffe use: --logtostderr, --log_dir, --minloglevel, --v, ...
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace caffe::tools {

// Declares the flags, hidden from help, with Caffe's defaults: to standard error, without a year.
void AddLogFlags(CLI::App& app);

// Starts logging as the flags say. With --log_dir, logs go to files as well as standard error.
void StartLogging(const char* program);

// Returns an error text if --log_dir is not a folder that can be written to, else an empty string.
// In that case logging falls back to standard error alone.
std::string DropBadLogDir();

}  // namespace caffe::tools
