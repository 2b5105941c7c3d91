// Log lines that Caffe's solver.cpp writes: scripts find them by that file name.
#pragma once

#include <glog/logging.h>

#define SOLVER_LINE(severity) \
  google::LogMessage("solver.cpp", __LINE__, google::GLOG_##severity).stream()
#define SOLVER_LINE_IF(severity, condition) \
  !(condition) ? void(0) : google::LogMessageVoidify() & SOLVER_LINE(severity)
