#include "caffe/ops/adaptive_updates.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

template <typename UpdateOp>
void Add(std::vector<OpCase>* cases, UpdateOp op = {}) {
  op.lr_mult = 2;
  op.decay_mult = 0.5;
  const CaseOperand w = T({7, 300}).Wide(), moment = w.In(0.01, 1);
  CaseOperand scalars = T({8}).As(DType::kDouble).In(0.1, 0.9);
  for (const ops::Regularization rule :
       {ops::Regularization::kNone, ops::Regularization::kL1, ops::Regularization::kL2}) {
    op.regularization = rule;
    std::vector<CaseOperand> outputs(1 + UpdateOp::kStates, moment);
    outputs[0] = w;
    cases->push_back({StrCat(UpdateOp::kName, static_cast<int>(rule)), op, {w, scalars}, outputs});
  }
}

}  // namespace

void AddUpdateCases(std::vector<OpCase>* cases) {
  Add<ops::NesterovUpdate>(cases);
  Add<ops::AdaGradUpdate>(cases);
  Add<ops::RmsPropUpdate>(cases);
  Add<ops::AdaDeltaUpdate>(cases);
  Add<ops::AdamUpdate>(cases);
  Add<ops::SagUpdate>(cases);
  Add<ops::AdaSecantUpdate>(cases);
  Add<ops::LambUpdate>(cases);
}

}  // namespace caffe::testing
