// Names of snapshots, and functions that find them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/solver_state.hpp"

namespace caffe {

// The prefix by BVLC's rules: the field; with the solver file's stem if it is a folder; by default,
// the solver file without its extension.
CAFFE_EXPORT std::string SnapshotPrefix(const SolverParameter& param,
                                        const std::string& solver_file);

// The common part of a snapshot's two file names: <prefix>_iter_<iteration>.
std::string SnapshotStem(const std::string& prefix, int64_t iteration);
// The same for the best model of a run: <prefix>_best.
std::string BestStem(const std::string& prefix);
std::string StateFileOf(const std::string& stem, bool as_hdf5);
std::string WeightsFileOf(const std::string& stem, bool as_hdf5);

// State files <prefix>_iter_N of the run that continues from `progress`, oldest first: those with
// its solver, net and seed, up to its iteration.
std::vector<std::string> SnapshotsOfRun(const std::string& prefix, const SolverProgress& progress);
// Removes both files of a snapshot, the state first, so that no state is left without weights.
// Missing files are not an error. Throws IoError.
void RemoveSnapshot(const std::string& state_file);

// Throws IoError if no file can be created at the prefix; creates and removes one with the longest
// name that the run needs. Removes incomplete files of killed runs with this prefix; those of
// running processes are kept.
CAFFE_EXPORT void CheckSnapshotWritable(const SolverParameter& param,
                                        const std::string& solver_file);

}  // namespace caffe
