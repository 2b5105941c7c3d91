#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// Stochastic gradient descent with momentum (Polyak 1964).
class SGDRule final : public ElementwiseRule<ops::SgdUpdate> {
 public:
  explicit SGDRule(const SolverParameter& param) : ElementwiseRule(param) {
    op_.decoupled = param.regularization_type() == "WD";
  }
};

REGISTER_SOLVER_CLASS(SGD);

}  // namespace
}  // namespace caffe
