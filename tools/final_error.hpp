// Reports the error that ends a program.
#pragma once

#include <glog/logging.h>

#include <cstdio>
#include <string>

#include "caffe/core/printable.hpp"

namespace caffe::tools {

// Logs the error. If the log's flags would hide it (GLOG_minloglevel=3), prints it to standard
// error instead, prefixed with `program`: a program that fails must say why.
inline void ReportFinalError(const std::string& program, const std::string& text) {
  const std::string lines = PrintableLines(text);
  const bool is_logged = FLAGS_minloglevel <= google::GLOG_ERROR;
  if (is_logged) LOG(ERROR) << lines;
  const bool is_seen = FLAGS_logtostderr || FLAGS_alsologtostderr || FLAGS_logtostdout ||
                       FLAGS_stderrthreshold <= google::GLOG_ERROR;
  if (is_logged && is_seen) return;
  const bool names_program =
      program.empty() || lines.starts_with(program + " ") || lines.starts_with(program + ":");
  std::fprintf(stderr, "%s%s%s\n", names_program ? "" : program.c_str(), names_program ? "" : ": ",
               lines.c_str());
}

}  // namespace caffe::tools
