// What a run does when it makes no progress: --watchdog, --watchdog_seconds.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

struct WatchdogOptions {
  std::string watchdog;          // empty: the solver's field
  std::optional<float> seconds;  // likewise

  void Add(CLI::App& app);
  void PutInto(SolverParameter* param) const;
};

// Ends the program where the run cannot be ended otherwise. Nothing is unwound: threads hang.
[[noreturn]] void EndHangingRun(const std::string& why);

}  // namespace caffe::tools
