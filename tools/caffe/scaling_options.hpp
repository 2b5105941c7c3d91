// caffe plan --ranks: what many ranks take, by flags that describe them and their network.
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

  // Whether a prediction is asked for. Throws InvalidArgument where only its other flags are given.
  bool are_given() const;
  // Numbers of ranks, in the order given; at least one. Throws InvalidArgument.
  std::vector<int> Ranks() const;
  // How many ranks share a machine. `are_gpus`: what is usual differs. Throws InvalidArgument.
  int RanksPerMachine(bool are_gpus) const;
  // What the flags say, for a network with its ranks_per_machine. Throws InvalidArgument where a
  // flag is wrong, or missing for so many ranks.
  void Describe(int ranks, Network* network) const;

 private:
  std::string ranks_, bandwidth_, latency_, bandwidth_within_, latency_within_;
  std::optional<int> ranks_per_machine_;
};

}  // namespace caffe::tools
