#include <cmath>

#include "caffe/ops/update_rules.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// One of them is larger than the part that a block processes at a time.
const std::vector<CaseOperand>& Parameters() {
  static const std::vector<CaseOperand> parameters = {T({17, 10, 5, 6}).Wide(), T({7}).Wide(),
                                                      T({4097}).Wide()};
  return parameters;
}

CaseOperand Numbers(int64_t count) {
  return T({count}).As(DType::kDouble).In(0.1, 0.9);
}

// The decision that parameters make the step, or not.
CaseOperand DecisionOf(bool takes_step) {
  CaseOperand decision = Numbers(ops::kFirstRate + static_cast<int64_t>(Parameters().size()));
  decision.value = [=](const std::vector<Elements>&, int64_t i) {
    return i == ops::kTakesStep ? (takes_step ? 1.0 : 0.0) : 0.3 + 0.1 * static_cast<double>(i);
  };
  return decision;
}

template <typename Rule>
void Add(std::vector<OpCase>* cases) {
  ops::ParameterUpdate<Rule> op;
  std::vector<CaseOperand> inputs, outputs;
  for (const CaseOperand& w : Parameters()) {
    Rule& rule = op.each.emplace_back();
    rule.lr_mult = 1 + static_cast<double>(op.each.size());
    rule.decay_mult = 0.5;
    inputs.push_back(w);
    outputs.push_back(w);
    outputs.insert(outputs.end(), Rule::kStates, w.In(0.01, 1));
  }
  inputs.push_back(Numbers(ops::kStepNumbers));
  inputs.push_back(Absent());
  ops::ParameterUpdate<Rule> copying = op;
  copying.copies = {0, 2, 0};
  std::vector<CaseOperand> with_copies = outputs;
  with_copies.insert(with_copies.end(),
                     {Parameters()[0].As(Layout::kChannelsLast).As(DType::kBFloat16),
                      Parameters()[2].As(DType::kFloat16), Parameters()[0].As(DType::kFloat16)});
  cases->push_back({StrCat(Rule::kName, "Copies"), copying, inputs, with_copies});
  for (const ops::Regularization regularization :
       {ops::Regularization::kNone, ops::Regularization::kL1, ops::Regularization::kL2}) {
    for (Rule& rule : op.each) rule.regularization = regularization;
    cases->push_back({StrCat(Rule::kName, static_cast<int>(regularization)), op, inputs, outputs});
  }
  for (const bool takes_step : {true, false}) {
    inputs.back() = DecisionOf(takes_step);
    cases->push_back(
        {StrCat(Rule::kName, takes_step ? "Decided" : "Skipped"), op, inputs, outputs});
  }
}

void AddMeasureCases(std::vector<OpCase>* cases) {
  struct Operands {
    const char* name;
    bool weights, history;
  };
  for (const Operands& has : {Operands{"", true, true}, Operands{"Gradients", false, false},
                              Operands{"Weights", true, false}, Operands{"History", false, true}}) {
    const ops::MeasureParameters op{{false, true, true}};
    std::vector<CaseOperand> inputs;
    for (const CaseOperand& parameter : Parameters()) {
      inputs.insert(inputs.end(), {parameter, has.weights ? parameter : Absent(),
                                   has.history ? parameter : Absent()});
    }
    const auto rows = static_cast<int64_t>(Parameters().size()) + 1;
    cases->push_back({StrCat("MeasureParameters", has.name),
                      op,
                      inputs,
                      {T({rows, ops::kMeasures}).As(DType::kDouble)}});
  }
}

// 300 parameters are more than a block has threads.
void AddDecideCases(std::vector<OpCase>* cases) {
  constexpr int64_t kParameters = 300;
  const auto add = [&](const char* name, const ops::DecideStep& op, bool is_finite) {
    CaseOperand measures = T({kParameters + 1, ops::kMeasures}).As(DType::kDouble).In(0.1, 4);
    measures.value = [=](const std::vector<Elements>&, int64_t i) {
      const bool is_largest = i == kParameters * ops::kMeasures + ops::kLargestGradient;
      return is_largest && !is_finite ? NAN : 0.1 + 0.7 * static_cast<double>(i % 5);
    };
    cases->push_back(
        {name,
         op,
         {Numbers(ops::kStepNumbers), measures},
         {Numbers(ops::kFirstRate + kParameters), Numbers(op.kStateNumbers + kParameters)}});
  };
  const ops::GradientScaleRule scaling = {.factor = 3, .adaptive = true};
  ops::LarcRule larc = {.is_on = true, .is_turbo = true, .eta = 0.1};
  add("DecideStepClips", {.clip_gradients = 0.5}, true);
  add("DecideStepScales", {.scaling = scaling}, true);
  add("DecideStepSkips", {.clip_gradients = 0.5, .scaling = scaling, .larc = larc}, false);
  add("DecideStepLarc", {.clip_gradients = 0.5, .scaling = scaling, .larc = larc}, true);
  larc.clips = larc.is_sag = true;
  add("DecideStepLarcSag", {.larc = larc}, true);
}

void AddCopyCases(std::vector<OpCase>* cases) {
  std::vector<CaseOperand> inputs = Parameters();
  cases->push_back({"CopyAll", ops::CopyAll{}, inputs, Parameters()});
  for (const bool takes_step : {true, false}) {
    inputs = Parameters();
    inputs.push_back(DecisionOf(takes_step));
    cases->push_back({StrCat("CopyAll", takes_step ? "Decided" : "Skipped"), ops::CopyAll{}, inputs,
                      Parameters()});
  }
}

void AddAverageCases(std::vector<OpCase>* cases) {
  for (const bool takes_step : {true, false}) {
    std::vector<CaseOperand> inputs = Parameters();
    CaseOperand step = Numbers(ops::kStepNumbers);
    step.value = [](const std::vector<Elements>&, int64_t i) {
      return i == ops::kAverageCount ? 9.0 : 0.5;
    };
    CaseOperand state = Numbers(ops::DecideStep::kStateNumbers);
    state.value = [](const std::vector<Elements>&, int64_t) { return 2.0; };
    inputs.insert(inputs.end(), {step, state, takes_step ? Absent() : DecisionOf(false)});
    cases->push_back({takes_step ? "AverageAll" : "AverageAllSkipped", ops::AverageAll{0.9}, inputs,
                      Parameters()});
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
  Add<ops::LionUpdate>(cases);
  Add<ops::SagUpdate>(cases);
  Add<ops::AdaSecantUpdate>(cases);
  Add<ops::LambUpdate>(cases);
  AddMeasureCases(cases);
  AddDecideCases(cases);
  AddCopyCases(cases);
  AddAverageCases(cases);
}

}  // namespace caffe::testing
