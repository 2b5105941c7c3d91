// Flags that several commands of `caffe` share, and what they say. A flag of one command is defined
// in that command's file.
#pragma once

#include <gflags/gflags.h>

#include <optional>
#include <string>
#include <vector>

#include "caffe/net.hpp"

DECLARE_string(gpu);
DECLARE_string(solver);
DECLARE_string(model);
DECLARE_int32(level);
DECLARE_string(weights);
DECLARE_int32(iterations);
DECLARE_bool(json);

namespace caffe::tools {

// -phase; TRAIN without the flag.
Phase PhaseFromFlag();
// -stage.
std::vector<std::string> StagesFromFlag();
// -precision, or none without the flag: then the solver's own field holds.
std::optional<Precision> PrecisionFromFlag();
NetOptions NetOptionsFromFlags(bool with_backward);
// The definition in -solver, with -level, -stage and -precision in it.
SolverParameter SolverFromFlags();
// Throws InvalidArgument where -iterations is not positive.
void CheckIterations();

}  // namespace caffe::tools
