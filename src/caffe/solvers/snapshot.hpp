// Files of a training run: names, solver states in both formats, checks.
#pragma once

#include <string>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// "<prefix>_iter_<N>.caffemodel" or ".solverstate", with ".h5" for HDF5.
std::string ModelFileName(const SolverParameter& param, int iter);
std::string StateFileName(const SolverParameter& param, int iter);

// The prefix for a solver file; see ReadSolverParameter.
std::string SnapshotPrefix(const std::string& solver_file, const std::string& given);

// Writes and removes `<prefix>.tempfile`. Throws InvalidArgument without a prefix, IoError when
// snapshots could not be written.
void CheckSnapshotPrefix(const std::string& prefix);

// Writes the weights, in the format that the name says.
void WriteModel(const std::string& file, const Net& net, bool write_diff);

// The format follows the ".h5" ending. Reading throws IoError for a missing or damaged file and
// InvalidArgument for weights given in place of a state.
void WriteSolverState(const std::string& file, const SolverState& state);
SolverState ReadSolverState(const std::string& file);

// Where the weights of `state` are: the name as recorded, else beside `state_file`. Throws IoError
// naming both places.
std::string FindLearnedNet(const SolverState& state, const std::string& state_file);

}  // namespace caffe
