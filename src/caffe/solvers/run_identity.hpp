// Distinguishes snapshots of different runs.
#pragma once

#include <cstdint>
#include <string>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The solver's fields, one per line, without those that may change on resume: its length, tests,
// displays, outputs, and the device.
std::string SolverIdentity(const SolverParameter& param);
// A hash of the net's definition, independent of the location of its data.
uint64_t NetIdentity(const Net& net);

// Returns how the first identity differs from an earlier one, such as "base_lr: 0.01 (was base_lr:
// 0.1), iter_size: 2 (was not there)"; empty if they are equal.
std::string DifferencesOf(const std::string& now, const std::string& before);

}  // namespace caffe
