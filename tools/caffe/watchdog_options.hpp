// Options for runs that make no progress: --watchdog, --watchdog_seconds.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

struct WatchdogOptions {
  std::string watchdog;          // empty: the solver's field
  std::optional<float> seconds;  // empty: the solver's field

  void Add(CLI::App& app);
  void PutInto(SolverParameter* param) const;
};

// Ends the program if the run cannot end normally. Nothing is unwound, because threads hang.
[[noreturn]] void EndHangingRun(const std::string& why);

}  // namespace caffe::tools
