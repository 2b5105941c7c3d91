#include "caffe/solvers/schedule.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

void RequireKnown(const char* field, const std::string& policy,
                  const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), policy) != known.end()) return;
  const std::string near = NearestName(policy, known);
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  Require(!policy.empty(), "solver: ", field, " is not set; use one of ", list);
  throw InvalidArgument(StrCat("solver: unknown ", field, " '", policy, "'; use one of ", list,
                               near.empty() ? "" : "; did you mean '" + near + "'?"));
}

void RequireFinite(const char* field, float value) {
  Require(std::isfinite(value), "solver: ", field, " is ", value, "; it must be a finite number");
}

// Progress from 0 to 1, which polynomials are functions of. Beyond max_iter it stays 1, where a
// fractional power of a negative number would be no number.
double Progress(const SolverParameter& param, int iteration) {
  return std::min(1.0, static_cast<double>(iteration) / static_cast<double>(param.max_iter()));
}

double PolicyRate(const SolverParameter& param, int iteration, int current_step) {
  const std::string& policy = param.lr_policy();
  const double base = param.base_lr(), gamma = param.gamma();
  if (policy == "fixed") return base;
  if (policy == "step") return base * std::pow(gamma, iteration / param.stepsize());
  if (policy == "exp") return base * std::pow(gamma, iteration);
  if (policy == "inv") return base * std::pow(1 + gamma * iteration, -param.power());
  if (policy == "multistep" || policy == "plateau") return base * std::pow(gamma, current_step);
  if (policy == "poly") {
    const double floor = std::max<double>(param.min_lr(), 0);
    return (base - floor) * std::pow(1 - Progress(param, iteration), param.power()) + floor;
  }
  if (policy == "sigmoid") return base / (1 + std::exp(-gamma * (iteration - param.stepsize())));
  throw InternalError("lr_policy '" + policy + "' was not checked");
}

}  // namespace

void CheckSchedule(const SolverParameter& param) {
  RequireKnown("lr_policy", param.lr_policy(),
               {"fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid", "plateau"});
  RequireKnown("momentum_policy", param.momentum_policy(), {"fixed", "poly", "opt"});
  RequireKnown("weight_decay_policy", param.weight_decay_policy(), {"fixed", "poly"});
  Require(param.lr_policy() != "step" || param.has_stepsize(),
          "solver: stepsize is not set; lr_policy 'step' needs the iterations between two changes "
          "of the rate, such as stepsize: 10000");
  Require(param.lr_policy() != "step" || param.stepsize() > 0, "solver: stepsize is ",
          param.stepsize(), "; lr_policy 'step' needs 1 or more");
  Require(param.has_base_lr(),
          "solver: base_lr is not set; give the learning rate, such as "
          "base_lr: 0.01");
  RequireFinite("base_lr", param.base_lr());
  // Caffe takes both, and somebody may want to climb.
  LOG_IF(WARNING, param.base_lr() < 0)
      << "base_lr is " << param.base_lr() << ": the loss grows with a negative rate";
  LOG_IF(WARNING, param.momentum() < 0 || param.momentum() >= 1)
      << "momentum is " << param.momentum() << "; outside [0, 1) training diverges";
  RequireFinite("gamma", param.gamma());
  RequireFinite("power", param.power());
  RequireFinite("rampup_lr", param.rampup_lr());
  RequireFinite("min_lr", param.min_lr());
  RequireFinite("momentum", param.momentum());
  RequireFinite("max_momentum", param.max_momentum());
  RequireFinite("momentum_power", param.momentum_power());
  RequireFinite("weight_decay", param.weight_decay());
  RequireFinite("max_weight_decay", param.max_weight_decay());
  RequireFinite("weight_decay_power", param.weight_decay_power());
  Require(param.min_lr() >= 0, "solver: min_lr is ", param.min_lr(), "; it must be 0 or more");
  // Caffe takes them: the rate steps at once where the next value has been passed already.
  LOG_IF(WARNING, !std::is_sorted(param.stepvalue().begin(), param.stepvalue().end()))
      << "solver: the stepvalues do not ascend; the rate steps once per iteration until it has "
         "caught up";
  Require(param.lr_policy() != "plateau" || param.plateau_winsize_size() > 0,
          "solver: lr_policy 'plateau' needs at least one plateau_winsize");
  const bool is_polynomial = param.lr_policy() == "poly" || param.momentum_policy() == "poly" ||
                             param.weight_decay_policy() == "poly";
  Require(!is_polynomial || param.max_iter() > 0,
          "solver: a 'poly' policy needs max_iter > 0, got ", param.max_iter());
  Require(param.lr_policy() != "poly" || param.base_lr() >= param.min_lr(), "solver: base_lr ",
          param.base_lr(), " is below min_lr ", param.min_lr());
}

double LearningRateAt(const SolverParameter& param, int iteration, int current_step) {
  double rate = 0;
  if (iteration < param.rampup_interval()) {
    const double progress =
        static_cast<double>(iteration) / static_cast<double>(param.rampup_interval());
    rate = param.rampup_lr() + (param.base_lr() - param.rampup_lr()) * progress * progress;
  } else {
    rate = PolicyRate(param, iteration, current_step);
  }
  // Not where min_lr is left out: BVLC's rates may be negative, to climb.
  return param.has_min_lr() ? std::max(rate, static_cast<double>(param.min_lr())) : rate;
}

int MultiStepAt(const SolverParameter& param, int iteration, int current_step) {
  if (iteration < param.rampup_interval()) return current_step;  // the policy is not asked yet
  if (current_step < param.stepvalue_size() && iteration >= param.stepvalue(current_step)) {
    return current_step + 1;
  }
  return current_step;
}

int PlateauAt(const SolverParameter& param, int iteration, int current_step, double smoothed_loss,
              PlateauState* state) {
  if (smoothed_loss < state->minimum_loss) {
    state->minimum_loss = smoothed_loss;
    state->iter_last_event = iteration;
  }
  if (current_step >= param.plateau_winsize_size()) return current_step;
  if (iteration - state->iter_last_event < param.plateau_winsize(current_step)) return current_step;
  state->iter_last_event = iteration;
  return current_step + 1;
}

double MomentumAt(const SolverParameter& param, int iteration, double rate) {
  const double momentum = param.momentum(), most = param.max_momentum();
  if (param.momentum_policy() == "poly") {
    return momentum +
           (most - momentum) * std::pow(Progress(param, iteration), param.momentum_power());
  }
  if (param.momentum_policy() == "opt") {
    const double root = 1 - 0.5 * std::sqrt(rate);
    return param.has_max_momentum() ? std::min(root * root, most) : root * root;
  }
  return momentum;
}

double WeightDecayAt(const SolverParameter& param, int iteration) {
  const double decay = param.weight_decay();
  if (param.weight_decay_policy() != "poly") return decay;
  return decay + (param.max_weight_decay() - decay) *
                     std::pow(Progress(param, iteration), param.weight_decay_power());
}

}  // namespace caffe
