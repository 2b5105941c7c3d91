#include "caffe/ops/soft_labels.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
void AddSoftLabelCases(std::vector<OpCase>* cases) {
  const CaseOperand x = T({4, 7, 3}), loss = T({}).Wide();
  const CaseOperand p = x.In(0.01, 0.9).Wide(), shares = x.In(0, 1).Wide();
  const CaseOperand weights = T({7}).Wide().In(0, 4);
  for (const int normalization : {0, 1, 2, 3}) {
    ops::LabelRule rule;
    rule.normalization = static_cast<ops::Normalization>(normalization);
    const ops::SoftmaxLossGrad hard{rule, 0.05f * static_cast<float>(normalization)};
    cases->push_back(
        {StrCat("SoftLabelLoss", normalization), ops::SoftLabelLoss{rule}, {p, shares}, {loss}});
    cases->push_back({StrCat("SoftLabelLossGrad", normalization),
                      ops::SoftLabelLossGrad{hard},
                      {p, shares, loss},
                      {x}});
  }
  cases->push_back({"SoftLabelLossWeighted", ops::SoftLabelLoss{}, {p, shares, weights}, {loss}});
  cases->push_back({"SoftLabelLossGradWeighted",
                    ops::SoftLabelLossGrad{{{}, 0.1f}},
                    {p, shares, loss, weights},
                    {x}});
}

}  // namespace caffe::testing
