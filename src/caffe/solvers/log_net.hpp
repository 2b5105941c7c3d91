// What Caffe's log says of a solver and its nets before training. The words are Caffe's: programs
// that read logs look for them.
#pragma once

#include <string>

#include "caffe/net.hpp"

namespace caffe {

// The solver's definition.
void LogSolver(const SolverParameter& param);

// `source`: "Creating " and what follows in the log. The net's definition, each layer with its
// blobs and their shapes, which layers learn or hand gradients on, the outputs, and what memory is
// planned. `solver_states`: tensors that the solver keeps per parameter.
void LogNet(const Net& net, const std::string& source, int solver_states);

// "training net from net file: lenet.prototxt".
std::string SourceOfTrainNet(const SolverParameter& param);
// The same of test net number `index`.
std::string SourceOfTestNet(const SolverParameter& param, int index);

}  // namespace caffe
