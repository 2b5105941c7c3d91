#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// RMSProp (Tieleman and Hinton 2012).
class RMSPropRule final : public ElementwiseRule<ops::RmsPropUpdate> {
 public:
  explicit RMSPropRule(const SolverParameter& param) : ElementwiseRule(param) {
    RequireNoMomentum(param);
    Require(param.rms_decay() >= 0 && param.rms_decay() < 1, "solver: rms_decay is ",
            param.rms_decay(), "; it must be in [0, 1)");
    op_.eps = DeltaOf(param);
    op_.rms_decay = param.rms_decay();
  }
};

REGISTER_SOLVER_CLASS(RMSProp);

}  // namespace
}  // namespace caffe
