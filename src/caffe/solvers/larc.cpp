#include "caffe/solvers/larc.hpp"

#include "caffe/error.hpp"

namespace caffe {

ops::LarcRule ParseLarc(const SolverParameter& param) {
  const ops::LarcRule rule = {.is_on = param.larc(),
                              .is_turbo = param.larc_turbo(),
                              .clips = param.larc_policy() == "clip",
                              .is_sag = param.type() == "SAG",
                              .eta = param.larc_eta()};
  if (!rule.is_on) return rule;
  Require(rule.clips || param.larc_policy() == "scale", "solver: larc_policy is '",
          param.larc_policy(), "'; use scale or clip");
  Require(rule.eta > 0, "solver: larc_eta is ", rule.eta, "; it must be positive");
  Require(rule.is_sag || param.type() == "SGD", "solver: larc is on, but the type is ",
          param.type(), "; LARC belongs to SGD and SAG (LAMB has its own per-layer rate)");
  return rule;
}

}  // namespace caffe
