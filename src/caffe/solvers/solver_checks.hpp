// Checks before training. All throw InvalidArgument with the field's name.
#pragma once

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Checks the solver's own fields, before any net is built.
void CheckSolver(const SolverParameter& param);

// Checks the train net; some problems only cause warnings. Without `needs_loss`, a net without a
// loss is allowed, for stepping by hand.
void CheckTrainable(const Net& net, bool needs_loss);

// Warns of BatchNorm layers whose statistics for testing average over more iterations than half of
// the training: tests would use those of weights long past.
void CheckStatistics(const SolverParameter& param, const Net& net);

// Checks a net with layers that are split over ranks.
void CheckSplitTraining(const SolverParameter& param, bool needs_whole_parameters);

}  // namespace caffe
