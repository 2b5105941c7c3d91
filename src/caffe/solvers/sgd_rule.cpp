#include "caffe/error.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/solvers/regularization.hpp"
#include "caffe/solvers/update_rule.hpp"

namespace caffe {
namespace {

// Stochastic gradient descent with momentum (Polyak 1964):
//   h = momentum * h + rate * g;  w = w - h
class SGDRule final : public UpdateRule {
 public:
  explicit SGDRule(const SolverParameter& param) : regularization_(ParseRegularization(param)) {}

  int num_states() const override { return 1; }

  Op MakeOp(const Net::LearnableParam& param) const override {
    return ops::SgdUpdate{.regularization = regularization_,
                          .lr_mult = param.lr_mult,
                          .decay_mult = param.decay_mult};
  }

  void FillScalars(const StepScalars& step, std::span<double, kMaxScalars> scalars) const override {
    scalars[0] = step.rate;
    scalars[1] = step.momentum;
    scalars[2] = step.weight_decay;
    scalars[3] = step.gradient_scale;
  }

 private:
  const ops::Regularization regularization_;
};

REGISTER_SOLVER_CLASS(SGD);

}  // namespace
}  // namespace caffe
