// Common base of optimizers whose update is one formula per element.
#pragma once

#include <cmath>

#include "caffe/error.hpp"
#include "caffe/ops/update_rules.hpp"
#include "caffe/solvers/regularization.hpp"
#include "caffe/solvers/update_rule.hpp"

namespace caffe {

template <typename UpdateOp>
class ElementwiseRule : public UpdateRule {
 public:
  explicit ElementwiseRule(const SolverParameter& param) {
    op_.regularization = ParseRegularization(param);
  }

  int num_states() const override { return UpdateOp::kStates; }

  Op MakeOp(std::span<const Net::LearnableParam> params,
            const std::vector<int>& copies) const override {
    ops::ParameterUpdate<UpdateOp> all;
    all.copies = copies;
    for (const Net::LearnableParam& param : params) {
      UpdateOp& op = all.each.emplace_back(op_);
      op.lr_mult = param.lr_mult;
      op.decay_mult = param.decay_mult;
    }
    return all;
  }

  void FillNumbers(const StepScalars& step,
                   std::span<double, ops::kStepNumbers> numbers) const override {
    numbers[ops::kRate] = step.rate;
    numbers[ops::kMomentum] = step.momentum;
    numbers[ops::kWeightDecay] = step.weight_decay;
    numbers[ops::kGradientFactor] = step.gradient_factor;
    numbers[ops::kCorrection] = Correction(step);
  }

 protected:
  virtual double Correction(const StepScalars&) const { return 1; }

  static void RequireNoMomentum(const SolverParameter& param) {
    Require(param.momentum() == 0, "solver: momentum is ", param.momentum(), ", but ", param.type(),
            " knows none; set momentum: 0 or leave it out");
  }

  // Returns delta, for optimizers where it keeps a division finite.
  static double DeltaOf(const SolverParameter& param) {
    Require(std::isfinite(param.delta()) && param.delta() >= 0, "solver: delta is ", param.delta(),
            "; it must be 0 or more and finite");
    return param.delta();
  }

  // Returns momentum2, for optimizers whose two moments are corrected as in Adam.
  static double Momentum2Of(const SolverParameter& param) {
    Require(param.momentum() >= 0 && param.momentum() < 1, "solver: momentum is ", param.momentum(),
            "; ", param.type(), " needs it in [0, 1)");
    Require(param.momentum2() >= 0 && param.momentum2() < 1, "solver: momentum2 is ",
            param.momentum2(), "; ", param.type(), " needs it in [0, 1)");
    return param.momentum2();
  }

  UpdateOp op_;
};

// sqrt(1 - momentum2^t) / (1 - momentum^t) in update t, counted from 1: corrects the bias of
// moments that start at 0 (Kingma and Ba 2015).
inline double AdamCorrection(const StepScalars& step, double momentum2) {
  const double t = step.iteration + 1;
  return std::sqrt(1 - std::pow(momentum2, t)) / (1 - std::pow(step.momentum, t));
}

}  // namespace caffe
