// Learning rate, momentum and weight decay as functions of the iteration.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument for an unknown policy, a missing field or a number that is not finite,
// before training starts. With max_epoch, checks that depend on the length of training are skipped,
// because the number of iterations is known only with the data.
void CheckSchedule(const SolverParameter& param);
// The skipped checks, once max_iter is known.
void CheckScheduleLength(const SolverParameter& param);

// The rate at `iteration`, by lr_policy:
//   fixed      base_lr
//   step       base_lr * gamma ^ floor(iteration / stepsize)
//   exp        base_lr * gamma ^ iteration
//   inv        base_lr * (1 + gamma * iteration) ^ -power
//   multistep, plateau  base_lr * gamma ^ current_step
//   poly       (base_lr - min_lr) * (1 - iteration / max_iter) ^ power + min_lr
//   sigmoid    base_lr / (1 + exp(-gamma * (iteration - stepsize)))
//   cosine     min_lr + (base_lr - min_lr) * (1 + cos(pi * t / T)) / 2, with t = iteration and
//              T = max_iter (Loshchilov and Hutter 2017, arXiv 1608.03983, equation 5; PyTorch's
//              CosineAnnealingLR with T_max = T)
//   restarts   the same formula with t = iterations since the cycle began and T its length: cycle,
//              cycle * cycle_mult, cycle * cycle_mult^2, ... (CosineAnnealingWarmRestarts with
//              T_0 = cycle, T_mult = cycle_mult)
//   onecycle   with top = rise * max_iter - 1 and last = max_iter - 1, half a cosine from
//              base_lr / start_div at 0 to base_lr at top, another one to base_lr / start_div /
//              final_div at last (Smith and Topin 2018, arXiv 1708.07120; OneCycleLR with
//              pct_start = rise, div_factor = start_div, final_div_factor = final_div)
// The first rampup_interval iterations rise from rampup_lr to base_lr instead, according to
// rampup_policy, with p = iteration / rampup_interval:
//   quadratic  rampup_lr + (base_lr - rampup_lr) * p ^ 2
//   linear     rampup_lr + (base_lr - rampup_lr) * p
//   cosine     rampup_lr + (base_lr - rampup_lr) * (1 - cos(pi * p)) / 2
// cosine and restarts begin after the ramp, at base_lr: t, and cosine's T, are counted from its
// end. The other policies count from iteration 0. The rate never falls below min_lr.
double LearningRateAt(const SolverParameter& param, int iteration, int current_step);

// The number of stepvalues reached, which is multistep's current_step at `iteration`.
int MultiStepAt(const SolverParameter& param, int iteration, int current_step);

// The state of plateau between iterations; saved in the solver state.
struct PlateauState {
  double minimum_loss = 1e38;  // best smoothed loss so far
  int iter_last_event = 0;     // iteration of that loss, or of the last step
};

// plateau's current_step at `iteration`: increases by one if the loss has not improved for
// plateau_winsize[current_step] iterations (as in SSD).
int PlateauAt(const SolverParameter& param, int iteration, int current_step, double smoothed_loss,
              PlateauState* state);

// momentum_policy: fixed; poly: to max_momentum by max_iter; opt: (1 - sqrt(rate) / 2)^2; onecycle:
// half a cosine from max_momentum to momentum while onecycle's rate rises, and another one back.
double MomentumAt(const SolverParameter& param, int iteration, double rate);

// weight_decay_policy: fixed; poly: to max_weight_decay by max_iter.
double WeightDecayAt(const SolverParameter& param, int iteration);

}  // namespace caffe
