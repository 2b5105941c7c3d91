// Writes snapshots: weights and the solver's state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "caffe/export.hpp"
#include "caffe/net.hpp"
#include "caffe/solvers/solver_state.hpp"

namespace caffe {

// Throws InvalidArgument when weights or history of so many bytes are too much for binary files.
void CheckSnapshotFits(uint64_t weight_bytes, uint64_t history_bytes);

struct SnapshotOptions {
  std::string stem;  // of both files, without their endings
  bool as_hdf5 = false;
  bool with_gradients = false;
  // Given for the last snapshot of a run: called when the files are on the disk and have no names
  // yet. Where it throws there is no snapshot. Where the state could not be written, the weights
  // stay all the same, because there is no other chance.
  std::function<void()> check = {};
};

// Writes model and state: both or, when one cannot be written, neither (but see `check`). The
// state has a mark of the weights, so that a pair of two runs is never taken for one. Returns the
// state file's name. Throws IoError.
std::string WriteSnapshot(const SnapshotOptions& options, const Net& net, const History& history,
                          SolverProgress progress);

}  // namespace caffe
