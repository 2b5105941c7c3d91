// By what a snapshot is told from those of other runs.
#pragma once

#include <cstdint>
#include <string>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The solver's fields, one a line, without those that a run may change when it goes on: how long it
// trains, what it tests, shows and writes, on which device.
std::string SolverIdentity(const SolverParameter& param);
// A hash of the net's definition, wherever its data lie.
uint64_t NetIdentity(const Net& net);

// "base_lr: 0.01 (was base_lr: 0.1), iter_size: 2 (was not there)": how the first identity differs
// from an earlier one; empty where they are alike.
std::string DifferencesOf(const std::string& now, const std::string& before);

}  // namespace caffe
