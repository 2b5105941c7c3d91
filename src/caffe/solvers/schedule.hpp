// Learning rate, momentum and weight decay as functions of the iteration.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument for an unknown policy or a missing field, before training starts.
void CheckSchedule(const SolverParameter& param);

// The rate at `iteration`, by lr_policy:
//   fixed      base_lr
//   step       base_lr * gamma ^ floor(iteration / stepsize)
//   exp        base_lr * gamma ^ iteration
//   inv        base_lr * (1 + gamma * iteration) ^ -power
//   multistep  base_lr * gamma ^ current_step
//   poly       (base_lr - min_lr) * (1 - iteration / max_iter) ^ power + min_lr
//   sigmoid    base_lr / (1 + exp(-gamma * (iteration - stepsize)))
// After rampup_interval iterations of rampup_lr + (base_lr - rampup_lr) * (iteration / interval)^2,
// and never below min_lr.
double LearningRateAt(const SolverParameter& param, int iteration, int current_step);

// The number of stepvalues reached: what multistep's current_step has grown to by `iteration`.
int MultiStepAt(const SolverParameter& param, int iteration, int current_step);

// momentum_policy: fixed; poly: to max_momentum by max_iter; opt: (1 - sqrt(rate) / 2)^2.
double MomentumAt(const SolverParameter& param, int iteration, double rate);

// weight_decay_policy: fixed; poly: to max_weight_decay by max_iter.
double WeightDecayAt(const SolverParameter& param, int iteration);

}  // namespace caffe
