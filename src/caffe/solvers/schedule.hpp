// Learning rate, momentum and weight decay as functions of the iteration.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument for an unknown policy, a missing field or a number that is not finite,
// before training starts.
void CheckSchedule(const SolverParameter& param);

// The rate at `iteration`, by lr_policy:
//   fixed      base_lr
//   step       base_lr * gamma ^ floor(iteration / stepsize)
//   exp        base_lr * gamma ^ iteration
//   inv        base_lr * (1 + gamma * iteration) ^ -power
//   multistep, plateau  base_lr * gamma ^ current_step
//   poly       (base_lr - min_lr) * (1 - iteration / max_iter) ^ power + min_lr
//   sigmoid    base_lr / (1 + exp(-gamma * (iteration - stepsize)))
// After rampup_interval iterations of rampup_lr + (base_lr - rampup_lr) * (iteration / interval)^2,
// and never below min_lr.
double LearningRateAt(const SolverParameter& param, int iteration, int current_step);

// The number of stepvalues reached: what multistep's current_step has grown to by `iteration`.
int MultiStepAt(const SolverParameter& param, int iteration, int current_step);

// What plateau remembers between iterations; saved in the solver state.
struct PlateauState {
  double minimum_loss = 1e38;  // best smoothed loss so far
  int iter_last_event = 0;     // iteration of that loss, or of the last step
};

// plateau's current_step at `iteration`: one more when the loss has not improved for
// plateau_winsize[current_step] iterations (SSD's rule).
int PlateauAt(const SolverParameter& param, int iteration, int current_step, double smoothed_loss,
              PlateauState* state);

// momentum_policy: fixed; poly: to max_momentum by max_iter; opt: (1 - sqrt(rate) / 2)^2.
double MomentumAt(const SolverParameter& param, int iteration, double rate);

// weight_decay_policy: fixed; poly: to max_weight_decay by max_iter.
double WeightDecayAt(const SolverParameter& param, int iteration);

}  // namespace caffe
