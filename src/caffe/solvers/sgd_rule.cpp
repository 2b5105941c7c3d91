#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// Stochastic gradient descent with momentum (Polyak 1964).
class SGDRule final : public ElementwiseRule<ops::SgdUpdate> {
 public:
  using ElementwiseRule::ElementwiseRule;
};

REGISTER_SOLVER_CLASS(SGD);

}  // namespace
}  // namespace caffe
