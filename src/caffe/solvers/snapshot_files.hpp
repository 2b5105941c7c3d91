// Names of snapshots, and which of them there are.
#pragma once

#include <cstdint>
#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The prefix that BVLC's rules give: the field; in a folder, the solver file's stem; by default the
// solver file without its extension.
CAFFE_EXPORT std::string SnapshotPrefix(const SolverParameter& param,
                                        const std::string& solver_file);

// Both files of a snapshot, without their endings: <prefix>_iter_<iteration>.
std::string SnapshotStem(const std::string& prefix, int64_t iteration);

// Throws IoError when no file can be made at the prefix, by making one with the longest name that
// the run needs, and removing it. Removes what killed runs with this prefix left half-written; a
// living one's files stay.
CAFFE_EXPORT void CheckSnapshotWritable(const SolverParameter& param,
                                        const std::string& solver_file);

}  // namespace caffe
