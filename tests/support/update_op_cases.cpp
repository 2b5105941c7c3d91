#include "caffe/ops/update_rules.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// Two parameters, one of them larger than what a block takes at a time.
template <typename Rule>
void Add(std::vector<OpCase>* cases) {
  for (const ops::Regularization regularization :
       {ops::Regularization::kNone, ops::Regularization::kL1, ops::Regularization::kL2}) {
    ops::UpdateAll<Rule> op;
    std::vector<CaseOperand> inputs, outputs;
    for (const CaseOperand& w : {T({17, 300}).Wide(), T({7}).Wide(), T({4097}).Wide()}) {
      Rule& rule = op.each.emplace_back();
      rule.regularization = regularization;
      rule.lr_mult = 1 + static_cast<double>(op.each.size());
      rule.decay_mult = 0.5;
      inputs.push_back(w);
      outputs.push_back(w);
      outputs.insert(outputs.end(), Rule::kStates, w.In(0.01, 1));
    }
    inputs.push_back(T({3, op.kScalars}).As(DType::kDouble).In(0.1, 0.9));
    cases->push_back({StrCat(Rule::kName, static_cast<int>(regularization)), op, inputs, outputs});
  }
}

}  // namespace

void AddUpdateCases(std::vector<OpCase>* cases) {
  Add<ops::SgdUpdate>(cases);
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
