#include "caffe/solvers/schedule.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "caffe/core/nearest_name.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

void RequireKnown(const char* field, const std::string& policy,
                  const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), policy) != known.end()) return;
  const std::string near = NearestName(policy, known);
  const std::string list = JoinByComma(known);
  Require(!policy.empty(), "solver: ", field, " is not set; use one of ", list);
  throw InvalidArgument(StrCat("solver: unknown ", field, " '", policy, "'; use one of ", list,
                               near.empty() ? "" : "; did you mean '" + near + "'?"));
}

void RequireFinite(const char* field, float value) {
  Require(std::isfinite(value), "solver: ", field, " is ", value, "; it must be a finite number");
}

// Progress from 0 to 1, the argument of polynomials. It stays 1 after max_iter, because a
// fractional power of a negative number would be NaN.
double Progress(const SolverParameter& param, int iteration) {
  return std::min(1.0, static_cast<double>(iteration) / static_cast<double>(param.max_iter()));
}

// Interpolates from `begin` to `end` along half a cosine; `progress` goes from 0 to 1.
double HalfCosine(double begin, double end, double progress) {
  return end + (begin - end) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

// Iterations since the end of the ramp, which is the origin of policies that begin at base_lr.
int AfterRamp(const SolverParameter& param, int iteration) {
  return iteration - std::max(param.rampup_interval(), 0);
}

double CosineRate(const SolverParameter& param, int iteration) {
  const double length = AfterRamp(param, param.max_iter());
  const double progress = std::min(1.0, AfterRamp(param, iteration) / length);
  return HalfCosine(param.base_lr(), param.min_lr(), progress);
}

double RestartsRate(const SolverParameter& param, int iteration) {
  double place = AfterRamp(param, iteration), length = param.cycle();
  if (param.cycle_mult() == 1) place = std::fmod(place, length);
  for (; place >= length; length *= param.cycle_mult()) place -= length;
  return HalfCosine(param.base_lr(), param.min_lr(), place / length);
}

// The last iteration in which onecycle's rate rises.
double EndOfRise(const SolverParameter& param) {
  return static_cast<double>(param.rise()) * param.max_iter() - 1;
}

// onecycle: rises from `low` to `high`, then falls to `end`.
double OneCycle(const SolverParameter& param, int iteration, double low, double high, double end) {
  // A run of few iterations may not rise, and one of a single iteration does not fall either.
  const double top = std::max(0.0, EndOfRise(param)), last = param.max_iter() - 1;
  if (iteration < top) return HalfCosine(low, high, iteration / top);
  if (last <= top) return high;
  return HalfCosine(high, end, std::min(1.0, (iteration - top) / (last - top)));
}

double OneCycleRate(const SolverParameter& param, int iteration) {
  const double base = param.base_lr(), low = base / param.start_div();
  return OneCycle(param, iteration, low, base, low / param.final_div());
}

double RampRate(const SolverParameter& param, int iteration) {
  const double progress =
      static_cast<double>(iteration) / static_cast<double>(param.rampup_interval());
  const double low = param.rampup_lr(), base = param.base_lr();
  if (param.rampup_policy() == "linear") return low + (base - low) * progress;
  if (param.rampup_policy() == "cosine") return HalfCosine(low, base, progress);
  return low + (base - low) * progress * progress;
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
  if (policy == "cosine") return CosineRate(param, iteration);
  if (policy == "restarts") return RestartsRate(param, iteration);
  if (policy == "onecycle") return OneCycleRate(param, iteration);
  if (policy == "sigmoid") return base / (1 + std::exp(-gamma * (iteration - param.stepsize())));
  throw InternalError("lr_policy '" + policy + "' was not checked");
}

void CheckRestarts(const SolverParameter& param) {
  Require(param.has_cycle(),
          "solver: cycle is not set; lr_policy 'restarts' needs the iterations of its first cycle, "
          "such as cycle: 10000");
  Require(param.cycle() > 0, "solver: cycle is ", param.cycle(),
          "; lr_policy 'restarts' needs 1 iteration or more");
  Require(std::isfinite(param.cycle_mult()) && param.cycle_mult() >= 1, "solver: cycle_mult is ",
          param.cycle_mult(),
          "; each cycle is so many times as long as the one before: give 1 or "
          "more");
}

// Checks lr_policy and momentum_policy.
void CheckOneCycle(const SolverParameter& param, const char* field) {
  Require(param.rise() > 0 && param.rise() < 1, "solver: rise is ", param.rise(), "; ", field,
          " 'onecycle' needs the share of the iterations in which the rate rises, between 0 and 1");
  for (const auto& [name, divisor] :
       {std::pair{"start_div", param.start_div()}, std::pair{"final_div", param.final_div()}}) {
    Require(std::isfinite(divisor) && divisor >= 1, "solver: ", name, " is ", divisor,
            "; the rate is divided by it: give 1 or more");
  }
  Require(param.rampup_interval() <= 0, "solver: rampup_interval is ", param.rampup_interval(),
          ", but ", field,
          " 'onecycle' has a rise of its own; leave out rampup_interval, and set "
          "rise");
}

}  // namespace

void CheckSchedule(const SolverParameter& param) {
  RequireKnown("lr_policy", param.lr_policy(),
               {"fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid", "plateau", "cosine",
                "restarts", "onecycle"});
  RequireKnown("momentum_policy", param.momentum_policy(), {"fixed", "poly", "opt", "onecycle"});
  RequireKnown("rampup_policy", param.rampup_policy(), {"quadratic", "linear", "cosine"});
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
  // A warning, because Caffe accepts it and gradient ascent may be intended.
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
  // A warning, because Caffe accepts it: the rate steps at once if the next value has already
  // passed.
  LOG_IF(WARNING, !std::is_sorted(param.stepvalue().begin(), param.stepvalue().end()))
      << "solver: the stepvalues do not ascend; the rate steps once per iteration until it has "
         "caught up";
  Require(param.lr_policy() != "plateau" || param.plateau_winsize_size() > 0,
          "solver: lr_policy 'plateau' needs at least one plateau_winsize");
  const std::string& policy = param.lr_policy();
  const bool falls_to_min =
      policy == "poly" || policy == "cosine" || policy == "restarts" || policy == "onecycle";
  Require(!falls_to_min || param.base_lr() >= param.min_lr(), "solver: base_lr ", param.base_lr(),
          " is below min_lr ", param.min_lr());
  if (policy == "restarts") CheckRestarts(param);
  if (policy == "onecycle") CheckOneCycle(param, "lr_policy");
  if (param.momentum_policy() == "onecycle") {
    CheckOneCycle(param, "momentum_policy");
    Require(param.max_momentum() >= param.momentum(), "solver: max_momentum is ",
            param.max_momentum(), ", below momentum ", param.momentum(),
            "; momentum_policy 'onecycle' moves from max_momentum down to momentum and back");
  }
  if (!param.has_max_epoch()) CheckScheduleLength(param);
}

void CheckScheduleLength(const SolverParameter& param) {
  const std::string length = StrCat(
      param.has_max_epoch() ? StrCat("max_epoch ", param.max_epoch(), " is ") : "max_iter is ",
      param.max_iter(), param.has_max_epoch() ? " iterations" : "");
  const auto needs = [&](const char* field, const std::string& policy,
                         std::initializer_list<const char*> names) {
    const bool is_asked =
        std::any_of(names.begin(), names.end(), [&](const char* name) { return policy == name; });
    Require(!is_asked || param.max_iter() > 0, "solver: ", length, ", but ", field, " '", policy,
            "' depends on how long training is and needs max_iter > 0");
  };
  needs("lr_policy", param.lr_policy(), {"poly", "cosine", "onecycle"});
  needs("momentum_policy", param.momentum_policy(), {"poly", "onecycle"});
  needs("weight_decay_policy", param.weight_decay_policy(), {"poly"});
  Require(param.lr_policy() != "cosine" || AfterRamp(param, param.max_iter()) > 0,
          "solver: ", length, ", but rampup_interval is ", param.rampup_interval(),
          ", which leaves lr_policy 'cosine' no iteration; train longer, or lower rampup_interval");
}

double LearningRateAt(const SolverParameter& param, int iteration, int current_step) {
  double rate = 0;
  if (iteration < param.rampup_interval()) {
    rate = RampRate(param, iteration);
  } else {
    rate = PolicyRate(param, iteration, current_step);
  }
  // Without min_lr there is no lower limit: BVLC allows negative rates for ascent.
  return param.has_min_lr() ? std::max(rate, static_cast<double>(param.min_lr())) : rate;
}

int MultiStepAt(const SolverParameter& param, int iteration, int current_step) {
  if (iteration < param.rampup_interval()) return current_step;  // the policy does not apply yet
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
  if (param.momentum_policy() == "onecycle") {
    return OneCycle(param, iteration, most, momentum, most);
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
