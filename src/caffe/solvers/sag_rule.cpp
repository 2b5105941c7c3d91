#include "caffe/solvers/elementwise_rule.hpp"

namespace caffe {
namespace {

// NVCaffe's averaged gradient.
class SAGRule final : public ElementwiseRule<ops::SagUpdate> {
 public:
  using ElementwiseRule::ElementwiseRule;
};

REGISTER_SOLVER_CLASS(SAG);

}  // namespace
}  // namespace caffe
