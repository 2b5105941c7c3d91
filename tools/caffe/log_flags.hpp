// glog's flags, which scripts for Caffe use: --logtostderr, --log_dir, --minloglevel, --v, ...
#pragma once

#include <CLI/CLI.hpp>

namespace caffe::tools {

// Declares them, hidden from help, and sets Caffe's defaults: to standard error, without a year.
void AddLogFlags(CLI::App& app);

// Starts logging as the flags say. --log_dir writes files beside standard error.
void StartLogging(const char* program);

// Throws InvalidArgument where --log_dir is no folder that can be written to: glog would go on
// without the files.
void CheckLogDir();

}  // namespace caffe::tools
