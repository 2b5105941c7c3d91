#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// Lion (Chen et al. 2023, arXiv 2302.06675), whose steps have one length; ignores
// regularization_type. Without momentum2 it takes the paper's 0.99 instead of Adam's 0.999.
class LionRule final : public ElementwiseRule<ops::LionUpdate> {
 public:
  explicit LionRule(const SolverParameter& param) : ElementwiseRule(param) {
    op_.regularization = ops::Regularization::kNone;
    const double momentum2 = Momentum2Of(param);
    if (param.has_momentum2()) op_.momentum2 = momentum2;
  }
};

REGISTER_SOLVER_CLASS(Lion);

}  // namespace
}  // namespace caffe
