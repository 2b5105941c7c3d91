#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// AdaDelta (Zeiler 2012); momentum is its decay rate.
class AdaDeltaRule final : public ElementwiseRule<ops::AdaDeltaUpdate> {
 public:
  explicit AdaDeltaRule(const SolverParameter& param) : ElementwiseRule(param) {
    op_.eps = DeltaOf(param);
  }
};

REGISTER_SOLVER_CLASS(AdaDelta);

}  // namespace
}  // namespace caffe
