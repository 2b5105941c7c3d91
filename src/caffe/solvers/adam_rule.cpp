#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// Adam (Kingma and Ba 2015).
class AdamRule final : public ElementwiseRule<ops::AdamUpdate> {
 public:
  explicit AdamRule(const SolverParameter& param) : ElementwiseRule(param) {
    op_.eps = DeltaOf(param);
    op_.momentum2 = Momentum2Of(param);
  }

 private:
  double Correction(const StepScalars& step) const override {
    return AdamCorrection(step, op_.momentum2);
  }
};

REGISTER_SOLVER_CLASS(Adam);

}  // namespace
}  // namespace caffe
