// Options of multi-process training: --ranks, --rank, --store, and the launcher's environment.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "caffe/ranks.hpp"

namespace caffe::tools {

class RankFlags {
 public:
  void Add(CLI::App& app);

  // The ranks given by flags, else by a launcher; nothing if this process trains alone. Throws
  // InvalidArgument if flags are missing or contradict each other.
  std::optional<RankOptions> Options() const;

 private:
  std::optional<int> ranks_, rank_;
  std::string store_;
  double join_seconds_ = RankOptions().join_seconds;
  std::string transport_ = RankOptions().transport;
};

// On ranks other than 0, logs only warnings and errors from now on.
void LogAsRank(int rank);

// "out.rank3.json" for "out.json"; rank 0 uses the name unchanged.
std::string FileOfRank(const std::string& file, int rank);

}  // namespace caffe::tools
