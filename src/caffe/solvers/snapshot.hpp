// Writes snapshots: weights and the solver's state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "caffe/export.hpp"
#include "caffe/net.hpp"
#include "caffe/solvers/solver_state.hpp"

namespace caffe {

// Throws InvalidArgument if weights or history of these sizes are too large for binary files.
void CheckSnapshotFits(uint64_t weight_bytes, uint64_t history_bytes);

struct SnapshotOptions {
  std::string stem;  // of both files, without their extensions
  bool as_hdf5 = false;
  bool with_gradients = false;
  // Set for the last snapshot of a run: called when both files are on disk under temporary names.
  // If it throws, no snapshot is created. If writing the state fails, the weights are kept, because
  // there will be no other chance to save them.
  std::function<void()> check = {};
};

// Writes model and state: both or, if one cannot be written, neither (except as described for
// `check`). The state contains a checksum of the weights, so that files of two runs are never
// combined. Returns the state file's name. Throws IoError.
std::string WriteSnapshot(const SnapshotOptions& options, const Net& net, const History& history,
                          SolverProgress progress);

}  // namespace caffe
