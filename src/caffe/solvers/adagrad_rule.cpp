#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// AdaGrad (Duchi et al. 2011).
class AdaGradRule final : public ElementwiseRule<ops::AdaGradUpdate> {
 public:
  explicit AdaGradRule(const SolverParameter& param) : ElementwiseRule(param) {
    RequireNoMomentum(param);
    op_.eps = DeltaOf(param);
  }
};

REGISTER_SOLVER_CLASS(AdaGrad);

}  // namespace
}  // namespace caffe
