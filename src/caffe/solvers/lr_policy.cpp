#include "caffe/solvers/lr_policy.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

const std::vector<std::string> kRatePolicies = {"fixed",     "step", "exp",     "inv",
                                                "multistep", "poly", "sigmoid", "plateau"};
const std::vector<std::string> kMomentumPolicies = {"fixed", "poly", "opt"};
const std::vector<std::string> kDecayPolicies = {"fixed", "poly"};

void CheckName(const char* field, const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string list;
  for (const std::string& policy : known) list += (list.empty() ? "" : ", ") + policy;
  const std::string near = NearestName(name, known);
  throw InvalidArgument(StrCat("solver: ", field, " '", name, "' is unknown; ",
                               near.empty() ? "" : "did you mean '" + near + "'? ", "use one of ",
                               list));
}

// Iterations done as a part of max_iter. Stops at 1: beyond it a fractional power has no value.
double Progress(const SolverParameter& param, int iter) {
  return std::min(1.0, static_cast<double>(iter) / param.max_iter());
}

double PolicyRate(const SolverParameter& param, int iter, const PolicyState& state) {
  const std::string& policy = param.lr_policy();
  const double base = param.base_lr(), gamma = param.gamma(), power = param.power();
  if (policy == "fixed") return base;
  if (policy == "step") return base * std::pow(gamma, iter / param.stepsize());
  if (policy == "exp") return base * std::pow(gamma, iter);
  if (policy == "inv") return base * std::pow(1 + gamma * iter, -power);
  if (policy == "multistep" || policy == "plateau") return base * std::pow(gamma, state.current_step);
  if (policy == "poly") {
    return (base - param.min_lr()) * std::pow(1 - Progress(param, iter), power) + param.min_lr();
  }
  CAFFE_ASSERT(policy == "sigmoid", policy);
  return base / (1 + std::exp(-gamma * (iter - param.stepsize())));
}

}  // namespace

void CheckPolicies(const SolverParameter& param) {
  const std::string& policy = param.lr_policy();
  CheckName("lr_policy", policy, kRatePolicies);
  CheckName("momentum_policy", param.momentum_policy(), kMomentumPolicies);
  CheckName("weight_decay_policy", param.weight_decay_policy(), kDecayPolicies);
  Require(param.has_base_lr(), "solver: base_lr is not set");
  Require(policy != "step" || param.stepsize() > 0, "solver: lr_policy step needs stepsize > 0, not ",
          param.stepsize());
  Require(std::is_sorted(param.stepvalue().begin(), param.stepvalue().end()),
          "solver: stepvalue has to ascend");
  Require(policy != "plateau" || param.plateau_winsize_size() > 0,
          "solver: lr_policy plateau needs at least one plateau_winsize");
  Require(param.min_lr() >= 0, "solver: min_lr is ", param.min_lr(), "; it has to be 0 or more");
  Require(policy != "poly" || param.base_lr() >= param.min_lr(), "solver: base_lr ", param.base_lr(),
          " is below min_lr ", param.min_lr());
  const bool uses_max_iter = policy == "poly" || param.momentum_policy() == "poly" ||
                             param.weight_decay_policy() == "poly";
  Require(!uses_max_iter || param.max_iter() > 0, "solver: a poly policy needs max_iter > 0");
}

void AdvancePolicy(const SolverParameter& param, int iter, double smoothed_loss, PolicyState* state) {
  if (param.lr_policy() == "multistep") {
    if (state->current_step < param.stepvalue_size() &&
        iter >= param.stepvalue(state->current_step)) {
      ++state->current_step;
      LOG(INFO) << "MultiStep Status: Iteration " << iter << ", step = " << state->current_step;
    }
  } else if (param.lr_policy() == "plateau") {
    if (smoothed_loss < state->minimum_loss) {
      state->minimum_loss = smoothed_loss;
      state->iter_last_event = iter;
    }
    if (state->current_step < param.plateau_winsize_size() &&
        iter - state->iter_last_event >= param.plateau_winsize(state->current_step)) {
      ++state->current_step;
      state->iter_last_event = iter;
      LOG(INFO) << "Plateau Status: Iteration " << iter << ", step = " << state->current_step;
    }
  }
}

double LearningRate(const SolverParameter& param, int iter, const PolicyState& state) {
  if (iter < param.rampup_interval()) {
    const double part = static_cast<double>(iter) / param.rampup_interval();
    const double start = param.rampup_lr();
    return std::max<double>(start + (param.base_lr() - start) * part * part, param.min_lr());
  }
  return std::max<double>(PolicyRate(param, iter, state), param.min_lr());
}

double Momentum(const SolverParameter& param, int iter, double rate) {
  if (param.momentum_policy() == "poly") {
    const double part = std::pow(Progress(param, iter), param.momentum_power());
    return param.momentum() + (param.max_momentum() - param.momentum()) * part;
  }
  if (param.momentum_policy() == "opt") {
    const double root = 1 - 0.5 * std::sqrt(rate);
    return param.has_max_momentum() ? std::min<double>(root * root, param.max_momentum())
                                    : root * root;
  }
  return param.momentum();
}

double WeightDecay(const SolverParameter& param, int iter) {
  if (param.weight_decay_policy() == "poly") {
    const double part = std::pow(Progress(param, iter), param.weight_decay_power());
    return param.weight_decay() + (param.max_weight_decay() - param.weight_decay()) * part;
  }
  return param.weight_decay();
}

}  // namespace caffe
