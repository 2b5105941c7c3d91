#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// Layer-wise adaptive moments (You et al. 2020); weight decay is part of the update direction.
class LAMBRule final : public ElementwiseRule<ops::LambUpdate> {
 public:
  explicit LAMBRule(const SolverParameter& param) : ElementwiseRule(param) {
    op_.regularization = ops::Regularization::kNone;
    op_.eps = DeltaOf(param);
    op_.momentum2 = Momentum2Of(param);
  }

  bool needs_whole_parameters() const override { return true; }

 private:
  double Correction(const StepScalars& step) const override {
    return AdamCorrection(step, op_.momentum2);
  }
};

REGISTER_SOLVER_CLASS(LAMB);

}  // namespace
}  // namespace caffe
