#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// Accelerated gradient (Nesterov 1983).
class NesterovRule final : public ElementwiseRule<ops::NesterovUpdate> {
 public:
  using ElementwiseRule::ElementwiseRule;
};

REGISTER_SOLVER_CLASS(Nesterov);

}  // namespace
}  // namespace caffe
