// What a solver refuses before it trains. All throw InvalidArgument with the field's name.
#pragma once

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The solver's own fields, before any net is made.
void CheckSolver(const SolverParameter& param);

// The train net; some of it is only warned of. Without `needs_loss` a net without a loss may be
// stepped by hand.
void CheckTrainable(const Net& net, bool needs_loss);

// A net some of whose layers are split over ranks.
void CheckSplitTraining(const SolverParameter& param, bool needs_whole_parameters);

}  // namespace caffe
