// Names of snapshots, and which of them there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/solver_state.hpp"

namespace caffe {

// The prefix that BVLC's rules give: the field; in a folder, the solver file's stem; by default the
// solver file without its extension.
CAFFE_EXPORT std::string SnapshotPrefix(const SolverParameter& param,
                                        const std::string& solver_file);

// Both files of a snapshot, without their endings: <prefix>_iter_<iteration>.
std::string SnapshotStem(const std::string& prefix, int64_t iteration);
// Of the best model of a run: <prefix>_best.
std::string BestStem(const std::string& prefix);
std::string StateFileOf(const std::string& stem, bool as_hdf5);
std::string WeightsFileOf(const std::string& stem, bool as_hdf5);

// State files <prefix>_iter_N that the run wrote which goes on from `progress`, oldest first: of
// its solver, net and seed, up to its iteration.
std::vector<std::string> SnapshotsOfRun(const std::string& prefix, const SolverProgress& progress);
// Removes both files of a snapshot, the state first, so that none is left without its weights.
// Files that are gone already are no error. Throws IoError.
void RemoveSnapshot(const std::string& state_file);

// Throws IoError when no file can be made at the prefix, by making one with the longest name that
// the run needs, and removing it. Removes what killed runs with this prefix left half-written; a
// living one's files stay.
CAFFE_EXPORT void CheckSnapshotWritable(const SolverParameter& param,
                                        const std::string& solver_file);

}  // namespace caffe
