// Conditions that must hold for a cluster's training, whatever happens to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tests/fuzz/cluster/cluster_run.hpp"

namespace caffe::fuzz {

struct ClusterReport {
  Fault::Kind fault = Fault::kNone;
  bool has_struck = false;
  std::string finding;  // empty: all conditions hold
};

// Checks clusters whose disk is a folder that it creates, and empties for each run.
class ClusterChecker {
 public:
  explicit ClusterChecker(std::string folder);

  // The seed's cluster trains undisturbed, then with a fault, then continues from the state left:
  // - undisturbed, and if a fault must not be noticed, all ranks end with the bits of threads;
  // - otherwise all surviving ranks end within 30 s and name the rank that failed;
  // - each file that has a snapshot's name is complete;
  // - a run that continues from the newest snapshot, with another number of ranks, has no errors
  // and
  //   ends with the same bytes.
  ClusterReport Check(uint64_t seed, Plant plant);

 private:
  static constexpr int kVariants = 4;

  SolverParameter SolverOf(int variant) const;
  const std::string& Expected(int variant, int ranks);
  ClusterOptions MakeOptions(uint64_t seed, int variant) const;
  void EmptyFolder() const;
  std::string TornSnapshot() const;

  const std::string folder_;
  std::map<std::pair<int, int>, std::string> expected_;  // by variant and number of ranks
};

}  // namespace caffe::fuzz
