// Logs a solver and its nets before training, in Caffe's words, because programs that read logs
// look for them.
#pragma once

#include <string>

#include "caffe/net.hpp"

namespace caffe {

// Logs the solver's definition.
void LogSolver(const SolverParameter& param);

// `source` follows "Creating " in the log. Logs the net's definition, each layer with its blobs and
// their shapes, which layers learn or propagate gradients, the outputs, and the planned memory.
// `solver_states`: tensors that the solver keeps per parameter.
void LogNet(const Net& net, const std::string& source, int solver_states);

// Logs a line with the net's size, and the planned memory.
void LogSizeOfNet(const Net& net, const std::string& source, int solver_states);

// Returns a text such as "training net from net file: lenet.prototxt".
std::string SourceOfTrainNet(const SolverParameter& param);
// The same for test net `index`.
std::string SourceOfTestNet(const SolverParameter& param, int index);

}  // namespace caffe
