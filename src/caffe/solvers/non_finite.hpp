// Finds the layer and blob in which non-finite numbers first appear. For error messages.
#pragma once

#include <string>

#include "caffe/solvers/solver_context.hpp"

namespace caffe {

// The state of a run, for error messages.
struct Moment {
  int iteration = 0;
  bool has_updated = false;  // true if this run has changed the weights
  int last_snapshot = -1;    // its iteration; -1: none
};

// Throws Error, naming the layer and blob, if the mean loss of all ranks is not finite.
void CheckLoss(const SolverContext& context, const Moment& moment, float loss);

// Throws Error, naming the blob, if weights are not finite after the last of some updates. Only if
// the host can access them: on a GPU a copy would take as long as an iteration, and the next loss
// or snapshot reveals it.
void CheckStepped(const SolverContext& context, const Moment& moment);

// Returns why a parameter is not finite, as text that follows its name. `has_updated`: true if this
// run has changed the weights.
std::string WhyNotFinite(bool has_updated);

// Repeats the last pass and returns the layer or blob in which NaN or infinity first appears, on
// any rank; empty if it does not appear again. `backward`, the last pass, makes it inspect
// gradients, too. Call it only when the run ends, and on all ranks.
std::string DescribeFirstNonFinite(const SolverContext& context, bool has_updated,
                                   const TrainingPass* backward = nullptr);

// Returns the first non-finite parameter among those that training writes (updated weights, running
// statistics), or "". Frozen parameters may be infinite on purpose. Runs nothing.
std::string DescribeNonFiniteWeights(const SolverContext& context, bool has_updated);

// Returns " (the last snapshot is of iteration 5)", for example; empty for -1.
std::string AboutLastSnapshot(int iteration);

}  // namespace caffe
