#include <cmath>

#include "caffe/ops/class_losses.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/pair_losses.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {

void AddLabelLossCases(std::vector<OpCase>* cases) {
  const CaseOperand loss = T({}).Wide(), dloss = T({}).Wide().In(0.5, 1.5);
  const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                       CaseOperand out) {
    cases->push_back({name, std::move(op), std::move(in), {std::move(out)}});
  };
  CaseOperand broken = T({40, 5});  // some scores are NaN or infinite
  broken.value = [](const std::vector<Elements>&, int64_t i) {
    const int64_t k = i * 7 % 23;
    return k < 3 ? NAN : k == 3 ? -INFINITY : k == 4 ? INFINITY : static_cast<double>(k) / 8;
  };
  for (const bool nan_is_right : {false, true}) {
    for (const int top_k : {1, 3, 5}) {
      cases->push_back({StrCat(nan_is_right ? "AccuracyNaNIsRight" : "AccuracyNaN", top_k),
                        ops::Accuracy{.axis = 1, .top_k = top_k, .nan_is_right = nan_is_right},
                        {broken, T({40}).Wide().Labels(5)},
                        {loss, T({5}).Wide()}});
    }
  }
  const CaseOperand x = T({6, 7}).In(-3, 3), p = T({6, 7}).In(0.01, 0.9);
  const CaseOperand label = T({6}).Wide().Labels(7);
  for (const bool squared : {false, true}) {
    const std::string norm = squared ? "L2" : "L1";
    add("HingeLoss" + norm, ops::HingeLoss{squared}, {x, label}, loss);
    add("HingeLossGrad" + norm, ops::HingeLossGrad{squared}, {x, label, dloss}, x);
  }
  add("MultinomialLogisticLoss", ops::MultinomialLogisticLoss{}, {p, label}, loss);
  add("MultinomialLogisticLossGrad", ops::MultinomialLogisticLossGrad{}, {p, label, dloss}, p);
  const CaseOperand h = T({7, 7}).Wide().In(0, 1);
  for (const std::optional<int> ignore : {std::optional<int>(), std::optional<int>(2)}) {
    const std::string suffix = ignore ? "Ignore" : "";
    const ops::LabelRule rule{1, ignore, ops::Normalization::kValid};
    add("InfogainLoss" + suffix, ops::InfogainLoss{rule}, {p, label, h}, loss);
    add("InfogainLossGrad" + suffix, ops::InfogainLossGrad{rule}, {p, label, h, dloss}, p);
    const CaseOperand target = ignore ? T({6, 7}).Wide().Labels(3) : T({6, 7}).Wide().In(0, 1);
    add("SigmoidCrossEntropyLoss" + suffix, ops::SigmoidCrossEntropyLoss{rule}, {x, target}, loss);
    add("SigmoidCrossEntropyLossGrad" + suffix, ops::SigmoidCrossEntropyLossGrad{rule},
        {x, target, dloss}, x);
    const ops::SigmoidCrossEntropy weighted{2.5};
    add("WeightedSigmoidCrossEntropyLoss" + suffix, ops::SigmoidCrossEntropyLoss{rule, weighted},
        {x, target}, loss);
    add("WeightedSigmoidCrossEntropyLossGrad" + suffix,
        ops::SigmoidCrossEntropyLossGrad{rule, weighted}, {x, target, dloss}, x);
  }
  const CaseOperand weight = T({6, 7}).Wide().In(0, 2), similar = T({6}).Wide().Labels(2);
  add("L1Loss", ops::L1Loss{}, {x, p}, loss);
  add("SmoothL1Loss", ops::SmoothL1Loss{}, {x, p}, loss);
  add("SmoothL1LossWeighted", ops::SmoothL1Loss{}, {x, p, weight}, loss);
  for (const int sign : {1, -1}) {
    const std::string of = sign == 1 ? "A" : "B";
    add("L1LossGrad" + of, ops::L1LossGrad{sign}, {x, p, dloss}, x);
    add("SmoothL1LossGrad" + of, ops::SmoothL1LossGrad{sign}, {x, p, dloss}, x);
    add("SmoothL1LossGradWeighted" + of, ops::SmoothL1LossGrad{sign}, {x, p, dloss, weight}, x);
  }
  for (const bool legacy : {false, true}) {
    const std::string suffix = legacy ? "Legacy" : "";
    const CaseOperand a = T({6, 7});
    add("ContrastiveLoss" + suffix, ops::ContrastiveLoss{2.5f, legacy}, {a, a, similar}, loss);
    add("ContrastiveLossGrad" + suffix, ops::ContrastiveLossGrad{2.5f, legacy, -1},
        {a, a, similar, dloss}, a);
  }
}

}  // namespace caffe::testing
