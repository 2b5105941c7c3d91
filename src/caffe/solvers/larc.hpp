// LARC: layer-wise adaptive rate control (You, Gitman, Ginsburg 2017, arXiv 1708.03888), with
// NVCaffe's additions.
#pragma once

#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/update_rule.hpp"

namespace caffe {

class Larc {
 public:
  // Throws InvalidArgument for an unknown larc_policy, a larc_eta that is not positive, or a solver
  // type other than SGD and SAG.
  explicit Larc(const SolverParameter& param);

  bool is_on() const { return is_on_; }
  bool is_turbo() const { return is_turbo_; }

  // L2 norms of one parameter, its gradient (un-scaled, before weight decay) and its history.
  struct Norms {
    double weights = 0, gradient = 0, history = 0;
    double gradient_dot_history = 0;
  };

  // The rate that replaces rate * lr_mult:
  //   trust = (1 - momentum) * eta * |w| / |g|     (SAG: eta * |w| / |h|), 1 if a norm is 0
  //   turbo: c = 0.95 c + 0.05 cos(g, h);  trust = trust - 0.9 c     (SAG: trust * (1 - 0.9 c))
  //   scale: rate * trust;  clip: min(rate, trust)
  // `cosine` is c of this parameter, 0 at first.
  double LocalRate(const StepScalars& step, const Norms& norms, float* cosine) const;

 private:
  bool is_on_ = false, is_turbo_ = false, clips_ = false, is_sag_ = false;
  double eta_ = 0;
};

}  // namespace caffe
