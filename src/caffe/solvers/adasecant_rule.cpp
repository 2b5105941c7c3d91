#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// AdaSecant (Gulcehre et al. 2017): learning rates from secants of the gradient, multiplied by
// base_lr; 1 is the paper's method.
class AdaSecantRule final : public ElementwiseRule<ops::AdaSecantUpdate> {
 public:
  explicit AdaSecantRule(const SolverParameter& param) : ElementwiseRule(param) {
    RequireNoMomentum(param);
    op_.eps = DeltaOf(param);
    Require(op_.eps > 0, "solver: delta is ", param.delta(),
            "; AdaSecant's first step has the length sqrt(delta), so give a positive one");
  }
};

REGISTER_SOLVER_CLASS(AdaSecant);

}  // namespace
}  // namespace caffe
