// What has to hold for a cluster's training, whatever happens to it.
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
  std::string finding;  // empty: everything holds
};

// Checks clusters whose disk is a folder that it makes, and empties again and again.
class ClusterChecker {
 public:
  explicit ClusterChecker(std::string folder);

  // The seed's cluster trains undisturbed, then with a fault, then goes on from what that left:
  // - undisturbed, and where a fault must not be noticed, all ranks end with the bits of threads;
  // - else all that live end within 30 s and name the rank that failed;
  // - each file that has a snapshot's name is whole;
  // - what goes on from the newest snapshot ends with the same bits, by another number of ranks
  //   without errors.
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
