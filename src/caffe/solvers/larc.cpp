#include "caffe/solvers/larc.hpp"

#include <algorithm>

#include "caffe/error.hpp"

namespace caffe {

Larc::Larc(const SolverParameter& param)
    : is_on_(param.larc()),
      is_turbo_(param.larc_turbo()),
      clips_(param.larc_policy() == "clip"),
      is_sag_(param.type() == "SAG"),
      eta_(param.larc_eta()) {
  if (!is_on_) return;
  Require(clips_ || param.larc_policy() == "scale", "solver: larc_policy is '", param.larc_policy(),
          "'; use scale or clip");
  Require(eta_ > 0, "solver: larc_eta is ", eta_, "; it must be positive");
  Require(is_sag_ || param.type() == "SGD", "solver: larc is on, but the type is ", param.type(),
          "; LARC belongs to SGD and SAG (LAMB has its own per-layer rate)");
}

double Larc::LocalRate(const StepScalars& step, const Norms& norms, float* cosine) const {
  const double numerator = is_sag_ ? norms.weights : (1 - step.momentum) * norms.weights;
  const double denominator = is_sag_ ? norms.history : norms.gradient;
  double trust = numerator > 0 && denominator > 0 ? eta_ * numerator / denominator : 1;
  if (is_turbo_) {
    const double norm = norms.gradient * norms.history;
    const double now = norm > 0 ? norms.gradient_dot_history / norm : 0;
    *cosine = static_cast<float>(0.95 * *cosine + 0.05 * now);
    trust = is_sag_ ? trust * (1 - 0.9 * *cosine) : trust - 0.9 * *cosine;
  }
  return clips_ ? std::min(step.rate, trust) : step.rate * trust;
}

}  // namespace caffe
