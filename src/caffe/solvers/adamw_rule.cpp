#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// Adam with decoupled weight decay (Loshchilov and Hutter 2019); ignores regularization_type.
class AdamWRule final : public ElementwiseRule<ops::AdamUpdate> {
 public:
  explicit AdamWRule(const SolverParameter& param) : ElementwiseRule(param) {
    op_.regularization = ops::Regularization::kNone;
    op_.decoupled = true;
    op_.eps = DeltaOf(param);
    op_.momentum2 = Momentum2Of(param);
  }

 private:
  double Correction(const StepScalars& step) const override {
    return AdamCorrection(step, op_.momentum2);
  }
};

REGISTER_SOLVER_CLASS(AdamW);

}  // namespace
}  // namespace caffe
