// caffe plan --ranks: flags that describe ranks and their network, to predict scaling.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "caffe/scaling_plan.hpp"

namespace caffe::tools {

class ScalingFlags {
 public:
  void Add(CLI::App& app);

  // True if a prediction is requested. Throws InvalidArgument if only its other flags are given.
  bool are_given() const;
  // The numbers of ranks, in the order given; at least one. Throws InvalidArgument.
  std::vector<int> Ranks() const;
  // Ranks per machine; the default depends on `are_gpus`. Throws InvalidArgument.
  int RanksPerMachine(bool are_gpus) const;
  // Fills in the flags for a network that has its ranks_per_machine. Throws InvalidArgument if a
  // flag is invalid, or missing although the ranks need several machines.
  void Describe(int ranks, Network* network) const;

 private:
  std::string ranks_, bandwidth_, latency_, bandwidth_within_, latency_within_;
  std::optional<int> ranks_per_machine_;
};

}  // namespace caffe::tools
