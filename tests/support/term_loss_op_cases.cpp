#include "caffe/ops/pair_losses.hpp"
#include "caffe/ops/term_losses.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {

void AddTermLossCases(std::vector<OpCase>* cases) {
  const CaseOperand loss = T({}).Wide(), dloss = T({}).Wide().In(0.5, 1.5);
  const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in, CaseOperand out,
                       OperandSet accumulates = {}) {
    cases->push_back({name, std::move(op), std::move(in), {std::move(out)}, accumulates});
  };
  const CaseOperand x = T({6, 5}), terms = T({6}).Wide().In(0, 1);
  add("SumOfTerms", ops::SumOfTerms{0.25}, {T({7000}).Wide().In(0, 1)}, loss);
  add("SumOfTermsDivided", ops::SumOfTerms{2}, {terms, T({}).Wide().In(2, 3)}, loss);
  add("SavedGrad", ops::SavedGrad{}, {T({6, 5}).Wide(), dloss}, x);
  add("TripletTerms", ops::TripletTerms(5, 0.5f), {x, x, x}, terms);
  add("TripletGrad", ops::TripletGrad(5, 0.5), {x, x, T({6}).Wide().Labels(2), dloss}, x);
  const CaseOperand labels = T({6}).Wide().Labels(4), centers = T({4, 5}).Wide();
  add("CenterTerms", ops::CenterTerms(5, 4, 1), {x, labels, centers}, terms);
  add("CenterGrad", ops::CenterGrad(5, 4, 0.5), {x, labels, centers, dloss}, x);
  add("CenterStep", ops::CenterStep(6, 5, 4, 2), {x, labels, centers, dloss}, centers, {0});
  for (const bool log_target : {false, true}) {
    const std::string suffix = log_target ? "OfLogarithms" : "";
    const CaseOperand t = log_target ? x : T({6, 5}).Labels(2);
    add("KLDivTerms" + suffix, ops::KLDivTerms(log_target), {x, t}, T({30}).Wide());
    add("KLDivGrad" + suffix, ops::KLDivGrad(log_target, 0.5), {t, dloss}, x);
  }
  for (const bool squares : {false, true}) {
    const std::string suffix = squares ? "OfSquares" : "";
    const ops::DiceOp dice(0.5, squares);
    const CaseOperand score = T({2, 3, 5}).In(0, 1), target = score.Labels(2), sum = terms;
    add("DiceTerms" + suffix, ops::DiceTerms{dice}, {sum, sum, sum}, terms);
    add("DiceGrad" + suffix, ops::DiceGrad(dice, 5, 0.5), {score, target, sum, sum, sum, dloss},
        score);
  }
  const CaseOperand flow = T({2, 3, 4, 5}).In(-2, 2), divisor = T({}).Wide().In(2, 3);
  for (const bool per_location : {false, true}) {
    const std::string suffix = per_location ? "PerLocation" : "";
    ops::FlowOp options;
    options.channels = 3, options.inner = 20, options.plateau = 0.25;
    options.per_location = per_location, options.scale = 0.5, options.epsilon = 0.01;
    const CaseOperand out = T({per_location ? 40 : 120}).Wide();
    add("FlowTerms" + suffix, ops::FlowTerms{options}, {flow, flow}, out);
    add("FlowTermsOfOne" + suffix, ops::FlowTerms{options}, {flow, Absent()}, out);
    add("FlowGrad" + suffix, ops::FlowGrad(options, -1), {flow, flow, divisor, dloss}, flow);
    if (!per_location) add("FlowNumbers", ops::FlowNumbers{options}, {flow, flow}, out);
  }
  const CaseOperand weight = T({6, 5}).Wide().In(0, 2), p = T({6, 5}).In(0.01, 0.9);
  add("SmoothL1LossTwoWeights", ops::SmoothL1Loss{2}, {x, p, weight, weight}, loss);
  add("SmoothL1LossGradTwoWeights", ops::SmoothL1LossGrad{-1, 2, true},
      {x, p, dloss, weight, weight}, x);
  add("SmoothL1LossOfDivisor", ops::SmoothL1Loss{.divisor = 4.0}, {x, p}, loss);
  add("SmoothL1LossGradOfDivisor", ops::SmoothL1LossGrad{.divisor = 4.0}, {x, p, dloss}, x);
  const ops::LabelRule rule{1, 2, ops::Normalization::kValid};
  add("SoftmaxLossOfDivisor",
      ops::SoftmaxLoss{{.normalization = ops::Normalization::kPreFixed, .pre_fixed_normalizer = 4}},
      {p.Wide(), labels}, loss);
  add("SoftmaxLossFocused", ops::SoftmaxLoss{rule, {2, 0.25f}}, {p.Wide(), labels}, loss);
  const ops::Focus linear = {.gamma = 1.5f, .alpha = 0.5f, .is_linear = true, .beta = 0.75f};
  add("SoftmaxLossLinear", ops::SoftmaxLoss{rule, linear}, {p.Wide(), labels}, loss);
  add("SoftmaxLossGradLinear", ops::SoftmaxLossGrad{.rule = rule, .focus = linear},
      {p.Wide(), labels, dloss}, x);
  add("SoftmaxLossGradFocused", ops::SoftmaxLossGrad{.rule = rule, .focus = {0.5f, 0.25f}},
      {p.Wide(), labels, dloss}, x);
}

}  // namespace caffe::testing
