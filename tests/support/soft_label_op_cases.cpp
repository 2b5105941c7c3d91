#include "caffe/ops/mixup.hpp"
#include "caffe/ops/soft_labels.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// The numbers of a Mix.
CaseOperand MixOf(const std::vector<double>& numbers) {
  CaseOperand mix = T({ops::Mix::kNumbers}).Wide();
  mix.value = [numbers](const std::vector<Elements>&, int64_t i) { return numbers[i]; };
  return mix;
}

}  // namespace

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

  const CaseOperand mixed = MixOf({0.3, 2, 0, 0, 0, 0, 0}), cut = MixOf({0.6, 3, 1, 1, 2, 4, 5});
  const CaseOperand whole = MixOf({1, 3, 0, 0, 0, 0, 0});
  const CaseOperand images = T({5, 3, 6, 7}), rows = T({4, 300}), labels = T({5}).Wide().Labels(9);
  cases->push_back({"MixItems", ops::MixItems{}, {images, mixed}, {images}});
  cases->push_back({"MixItemsCut", ops::MixItems{}, {images, cut}, {images}});
  cases->push_back({"MixItemsOfNothing", ops::MixItems{}, {images, whole}, {images}});
  cases->push_back({"MixItemsOfRows", ops::MixItems{}, {rows, mixed}, {rows}});
  cases->push_back({"MixLabels", ops::MixLabels{9}, {labels, mixed}, {T({5, 9}).Wide()}});
  cases->push_back({"MixLabelsAlone", ops::MixLabels{9}, {labels}, {T({5, 9}).Wide()}});
  const CaseOperand mix = T({ops::Mix::kNumbers}).Wide();
  for (const float alpha : {0.1f, 1.0f, 5.0f}) {
    cases->push_back({StrCat("DrawMix", alpha * 10),
                      ops::DrawMix{.stream = 5, .alpha = alpha, .items = 6},
                      {},
                      {mix}});
    cases->push_back({StrCat("DrawMixCut", alpha * 10),
                      ops::DrawMix{.stream = 6,
                                   .cutmix_prob = 1,
                                   .cutmix_alpha = alpha,
                                   .items = 7,
                                   .height = 30,
                                   .width = 40},
                      {},
                      {mix}});
  }
}

}  // namespace caffe::testing
