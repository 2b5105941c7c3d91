#include "caffe/ops/activations.hpp"
#include "caffe/ops/fake_quantize.hpp"
#include "caffe/ops/missing.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {

namespace {

// Scales are powers of two, so that the nearest number is the same in each type.
void AddRoundingCases(std::vector<OpCase>* cases) {
  const ops::QuantizedRange with_sign{1 / 64.0f}, without{1 / 64.0f, 0, 255};
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{2, 19, 5, 3}, {1}, {33, 1000}}) {
    const CaseOperand x = T(dims), wide = x.In(-5, 5);
    const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in) {
      cases->push_back({name + x.shape.ToString(), std::move(op), std::move(in), {x}});
    };
    add("FakeQuantize", ops::FakeQuantize(with_sign), {wide});
    add("FakeQuantizeUnsigned", ops::FakeQuantize(without), {wide});
    add("FakeQuantizeGrad", ops::FakeQuantizeGrad(with_sign), {wide, x});
    add("FakeQuantizeGradUnsigned", ops::FakeQuantizeGrad(without), {wide, x});
  }
  const auto add_rows = [&](const std::string& name, std::vector<int64_t> dims,
                            const ops::FakeQuantizeRows& op) {
    cases->push_back({name, op, {T(dims)}, {T(dims)}});
  };
  add_rows("FakeQuantizeFilters", {7, 5, 3, 3}, {.rows = 7});
  add_rows("FakeQuantizeLongRows", {3, 2100}, {.rows = 3});
  add_rows("FakeQuantizeColumns", {40, 9}, {.rows = 9, .step = 9});
  cases->push_back(
      {"FakeQuantizeZeros", ops::FakeQuantizeRows{.rows = 2}, {T({2, 6}).In(0, 0)}, {T({2, 6})}});
}

}  // namespace

void AddActivationCases(std::vector<OpCase>* cases) {
  AddRoundingCases(cases);
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{2, 19, 5, 3}, {1}, {33, 1000}}) {
    const CaseOperand x = T(dims), positive = x.In(0.1, 0.9), wide = x.In(-4, 4);
    const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in) {
      cases->push_back({name + x.shape.ToString(), std::move(op), std::move(in), {x}});
    };
    add("Abs", ops::Abs{}, {x});
    add("AbsGrad", ops::AbsGrad{}, {x, x});
    add("Elu", ops::Elu(0.7f, 1.1f), {wide});
    add("EluGrad", ops::EluGrad(0.7f, 1.1f), {wide, x});
    add("Bnll", ops::Bnll{}, {x.In(-60, 60)});
    add("BnllGrad", ops::BnllGrad{}, {x.In(-60, 60), x});
    add("Swish", ops::Swish(1.5f), {wide});
    add("SwishGrad", ops::SwishGrad(1.5f), {wide, x});
    add("HardSigmoid", ops::HardSigmoid(0.2f, 0.5f), {wide});
    add("HardSigmoidGrad", ops::HardSigmoidGrad(0.2f, 0.5f), {wide, x});
    add("HardSwish", ops::HardSwish{}, {wide});
    add("HardSwishGrad", ops::HardSwishGrad{}, {wide, x});
    add("Mish", ops::Mish{}, {x.In(-30, 60)});
    add("MishGrad", ops::MishGrad{}, {x.In(-30, 60), x});
    add("Gelu", ops::Gelu{}, {wide});
    add("GeluGrad", ops::GeluGrad{}, {wide, x});
    add("IsKnown", ops::IsKnown{}, {x});
    add("KnownOrZero", ops::KnownOrZero{}, {x});
    add("MeanOfKnown", ops::MeanOfKnown{}, {x.In(0.7, 1), x});
    add("Clip", ops::Clip(-0.5f, 0.25f), {x});
    add("ClipGrad", ops::ClipGrad(-0.5f, 0.25f), {x, x});
    add("Threshold", ops::Threshold(0.25f), {x});
    for (const auto& [name, power] : std::vector<std::pair<std::string, float>>{
             {"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}, {"Half", 0.5f}, {"Minus1", -1}}) {
      add("Power" + name, ops::Power(power, 2.0f, 1.0f), {positive});
      add("PowerGrad" + name, ops::PowerGrad(power, 2.0f, 1.0f), {positive, x});
    }
    add("Exp", ops::Exp(0.7, 0.5), {x});
    add("ExpGrad", ops::ExpGrad(0.7), {positive, x});
    add("Log", ops::Log(1.4, 2.0f, 0.5f), {positive});
    add("LogGrad", ops::LogGrad(1.4, 2.0f, 0.5f), {positive, x});
  }
}

}  // namespace caffe::testing
