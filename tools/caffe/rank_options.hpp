// Training by several processes: --ranks, --rank, --store, and what a launcher tells.
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

  // What the flags say, else what a launcher does; nothing where this process trains alone. Throws
  // InvalidArgument where flags are missing or contradict each other.
  std::optional<RankOptions> Options() const;

 private:
  std::optional<int> ranks_, rank_;
  std::string store_;
  double join_seconds_ = RankOptions().join_seconds;
  std::string transport_ = RankOptions().transport;
};

// From now on this process logs what concerns it alone: rank 0 speaks for all.
void LogAsRank(int rank);

// "out.json" as "out.rank3.json"; rank 0's file has the name that was given.
std::string FileOfRank(const std::string& file, int rank);

}  // namespace caffe::tools
