#include "caffe/ops/box_losses.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

constexpr int64_t kItems = 2, kPriors = 5, kClasses = 3;

// Objects of two classes, one that only its location is learned of, background, and a box that
// learns nothing.
CaseOperand Choices(int64_t locations) {
  CaseOperand operand = T({kItems, kPriors, ops::kChoices}).Wide();
  operand.value = [locations](const std::vector<Elements>&, int64_t i) {
    constexpr int kLabels[] = {1, -1, 0, 2, -1, 0};
    constexpr int kHasLocation[] = {1, 1, 0, 1, 0, 0};
    const int64_t box = i / ops::kChoices % 6;
    switch (i % ops::kChoices) {
      case ops::kClass:
        return static_cast<double>(kLabels[box]);
      case ops::kLocation:
        return kHasLocation[box] == 0 ? -1.0 : static_cast<double>(locations - 1);
      default:
        return static_cast<double>(i % 7) / 4 - 0.7;
    }
  };
  return operand;
}

}  // namespace

void AddBoxLossCases(std::vector<OpCase>* cases) {
  const CaseOperand scores = T({kItems, kPriors * kClasses}).In(-3, 3);
  const CaseOperand priors = T({1, 2, kPriors * 4}).Wide().In(0.1, 0.9);
  const CaseOperand terms = T({kItems, kPriors}).Wide(), dloss = T({}).Wide().In(0.5, 1.5),
                    divisor = T({}).Wide().In(2, 3);
  for (const bool is_softmax : {true, false}) {
    const std::string suffix = is_softmax ? "" : "OfSigmoids";
    cases->push_back({"BoxClassLosses" + suffix,
                      ops::BoxClassLosses(kClasses, is_softmax, 1),
                      {scores},
                      {terms}});
    cases->push_back({"BoxScoresGrad" + suffix,
                      ops::BoxScoresGrad(kClasses, is_softmax),
                      {scores, Choices(1), divisor, dloss},
                      {scores}});
  }
  for (const int64_t locations : {int64_t{1}, kClasses}) {
    const std::string suffix = locations == 1 ? "" : "OfEachClass";
    const bool is_one = locations == 1;
    const ops::BoxLocations of{kPriors, locations, is_one, is_one, 0.5};
    const CaseOperand loc = T({kItems, kPriors * locations * 4}).In(-2, 2);
    cases->push_back({"BoxLosses" + suffix,
                      ops::BoxLosses(kClasses, is_one, of),
                      {scores, Choices(locations), loc, priors},
                      {terms}});
    cases->push_back({"BoxLocationsGrad" + suffix,
                      ops::BoxLocationsGrad{of},
                      {loc, Choices(locations), priors, divisor, dloss},
                      {loc}});
  }
}

}  // namespace caffe::testing
