// Which layer and blob of a run are to blame for numbers that are not finite. For error messages.
#pragma once

#include <string>

#include "caffe/solvers/solver_context.hpp"

namespace caffe {

// Where a run stands, for what is said of it.
struct Moment {
  int iteration = 0;
  bool has_updated = false;  // whether this run has changed the weights
  int last_snapshot = -1;    // its iteration; -1: none
};

// Throws Error, naming the layer and blob, where the mean loss of all ranks is not a number.
void CheckLoss(const SolverContext& context, const Moment& moment, float loss);

// Throws Error, naming the blob, where weights are not finite after the last of some steps. Only
// where the host can look at them: on a GPU a copy would take as long as a step, and the next
// step's loss or the next snapshot tells.
void CheckStepped(const SolverContext& context, const Moment& moment);

// Why a parameter is not finite, as text that follows its name. `has_updated`: whether this run has
// changed the weights.
std::string WhyNotFinite(bool has_updated);

// The layer or blob in which NaN or infinity shows first in the last pass, which is made again; on
// any rank. Empty where it does not show again. `backward`, the last pass, is given to look at
// gradients, too. A run that asks this ends. All ranks ask together.
std::string DescribeFirstNonFinite(const SolverContext& context, bool has_updated,
                                   const TrainingPass* backward = nullptr);

// The first parameter that training writes (weights that are updated, running statistics) and that
// is not finite; else empty. Frozen parameters may be infinite on purpose. Runs nothing.
std::string DescribeNonFiniteWeights(const SolverContext& context, bool has_updated);

// " (the last snapshot is of iteration 5)"; empty for -1.
std::string AboutLastSnapshot(int iteration);

}  // namespace caffe
