// Learning rate, momentum and weight decay as functions of the iteration.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// What policies remember between iterations; saved in the solver state.
struct PolicyState {
  int current_step = 0;        // multistep, plateau
  double minimum_loss = 1e38;  // plateau: best smoothed loss so far
  int iter_last_event = 0;     // plateau: iteration of that loss, or of the last step
};

// Throws InvalidArgument when the policies are unknown or lack fields they need.
void CheckPolicies(const SolverParameter& param);

// Brings `state` to iteration `iter`; call once per iteration, before LearningRate.
void AdvancePolicy(const SolverParameter& param, int iter, double smoothed_loss, PolicyState* state);

double LearningRate(const SolverParameter& param, int iter, const PolicyState& state);
double Momentum(const SolverParameter& param, int iter, double rate);
double WeightDecay(const SolverParameter& param, int iter);

}  // namespace caffe
