#include "caffe/ops/loss.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {

void AddLossCases(std::vector<OpCase>* cases) {
  const CaseOperand x = T({4, 7, 3}), p = x.In(0.01, 0.9), labels = T({4, 3}).Labels(7);
  const CaseOperand loss = T({}).Wide();
  for (const int axis : {0, 1, 2}) {
    cases->push_back({StrCat("Softmax", axis), ops::Softmax{axis}, {x.In(-5, 5)}, {x.Wide()}});
    cases->push_back({StrCat("SoftmaxGrad", axis), ops::SoftmaxGrad{axis}, {p.Wide(), x}, {x}});
  }
  // Rows of few classes and positions that follow one another are computed together.
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{37, 21}, {2, 5, 300}}) {
    const CaseOperand many = T(dims);
    const CaseOperand of = dims.size() == 2 ? T({dims[0]}) : T({dims[0], dims[2]});
    const std::string suffix = "Together" + Shape(dims).ToString();
    cases->push_back({"Softmax" + suffix, ops::Softmax{1}, {many.In(-5, 5)}, {many.Wide()}});
    cases->push_back(
        {"SoftmaxGrad" + suffix, ops::SoftmaxGrad{1}, {many.Wide().In(0.01, 0.2), many}, {many}});
    cases->push_back({"SoftmaxLossGrad" + suffix,
                      ops::SoftmaxLossGrad{},
                      {many.Wide().In(0.01, 0.9), of.Labels(dims[1]), loss},
                      {many}});
  }
  for (const int normalization : {0, 1, 2, 3}) {
    for (const bool ignores : {false, true}) {
      ops::LabelRule rule;
      if (ignores) rule.ignore_label = 2;
      rule.normalization = static_cast<ops::Normalization>(normalization);
      const std::string suffix = StrCat(normalization, ignores ? "Ignore" : "");
      cases->push_back(
          {"SoftmaxLoss" + suffix, ops::SoftmaxLoss{rule}, {p.Wide(), labels}, {loss}});
      cases->push_back(
          {"SoftmaxLossGrad" + suffix, ops::SoftmaxLossGrad{rule}, {p.Wide(), labels, loss}, {x}});
    }
  }
  cases->push_back(
      {"SoftmaxLossGradSmoothed", ops::SoftmaxLossGrad{{}, 0.2f}, {p.Wide(), labels, loss}, {x}});
  const CaseOperand weights = T({7}).Wide().In(0, 4);
  cases->push_back(
      {"SoftmaxLossWeighted", ops::SoftmaxLoss{}, {p.Wide(), labels, weights}, {loss}});
  cases->push_back({"SoftmaxLossGradWeighted",
                    ops::SoftmaxLossGrad{{}, 0.1f, {.gamma = 1.5f}},
                    {p.Wide(), labels, loss, weights},
                    {x}});
  cases->push_back({"EuclideanLoss", ops::EuclideanLoss{}, {x, x.Wide()}, {loss}});
  cases->push_back({"EuclideanLossGrad", ops::EuclideanLossGrad{-1}, {x, x.Wide(), loss}, {x}});
  for (const int k : {1, 3}) {
    ops::Accuracy op{1, k, std::nullopt};
    cases->push_back({StrCat("Accuracy", k), op, {x, labels}, {loss, T({7})}});
    op.ignore_label = 1;
    cases->push_back({StrCat("AccuracyIgnore", k), op, {x, labels}, {loss}});
  }
}

}  // namespace caffe::testing
