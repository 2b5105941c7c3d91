#include "caffe/ops/arrays.hpp"
#include "caffe/ops/combine.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/random.hpp"
#include "caffe/ops/round_to.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// Two operands of one shape, and two that are repeated in turn.
void AddCombineCases(std::vector<OpCase>* cases) {
  struct Repeated {
    std::string name;
    std::vector<int64_t> a, b, whole;
    ops::BroadcastSteps broadcast;
  };
  for (const Repeated& one : std::vector<Repeated>{
           {"Same", {2, 6, 5, 4}, {2, 6, 5, 4}, {2, 6, 5, 4}, {1, {240}, {{{1}, {1}, {1}}}}},
           {"Row", {3, 1}, {1, 70}, {3, 70}, {2, {3, 70}, {{{1, 0}, {0, 1}, {70, 1}}}}},
           {"Crossed",
            {2, 1, 5, 1},
            {3, 1, 4},
            {2, 3, 5, 4},
            {4, {2, 3, 5, 4}, {{{5, 0, 1, 0}, {0, 4, 0, 1}, {60, 20, 4, 1}}}}}}) {
    const CaseOperand whole = T(one.whole);
    for (int kind = 0; kind < 7; ++kind) {
      const auto combination = static_cast<ops::Combination>(kind);
      const bool is_positive = combination >= ops::Combination::kDivide;
      const bool has_ties =
          combination == ops::Combination::kMaximum || combination == ops::Combination::kMinimum;
      CaseOperand a = T(one.a), b = T(one.b);
      if (is_positive && !has_ties) a = a.In(0.5, 2), b = b.In(0.5, 2);
      if (has_ties) a = a.Labels(3), b = b.Labels(3);
      cases->push_back({StrCat("Combine", one.name, kind),
                        ops::Combine{combination, one.broadcast},
                        {a, b},
                        {whole}});
      for (int operand = 0; kind > 1 && operand < 2; ++operand) {
        cases->push_back({StrCat("CombineGrad", one.name, kind, "_", operand),
                          ops::CombineGrad{combination, operand, one.broadcast},
                          {a, b, whole},
                          {whole}});
      }
    }
    const CaseOperand condition = whole.Labels(2).Wide();
    cases->push_back({"Choose" + one.name,
                      ops::Choose{one.broadcast},
                      {T(one.a), T(one.b), condition},
                      {whole}});
    for (const bool is_second : {false, true}) {
      cases->push_back({StrCat("ChooseGrad", one.name, is_second),
                        ops::ChooseGrad{is_second, one.broadcast},
                        {T(one.a), T(one.b).Labels(2).Wide()},
                        {whole}});
    }
  }
}

}  // namespace

void AddPointwiseCases(std::vector<OpCase>* cases) {
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{2, 19, 5, 3}, {1}, {70, 1000}}) {
    const CaseOperand x = T(dims), p = x.In(0.1, 0.9);
    const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in) {
      cases->push_back({name + x.shape.ToString(), std::move(op), std::move(in), {x}});
    };
    add("Relu", ops::Relu{}, {x});
    add("ReluLeaky", ops::Relu{0.1f}, {x});
    add("ReluGrad", ops::ReluGrad{}, {x, x});
    add("ReluGradLeaky", ops::ReluGrad{0.1f}, {x, x});
    add("Sigmoid", ops::Sigmoid{}, {x.In(-8, 8)});
    add("SigmoidGrad", ops::SigmoidGrad{}, {p, x});
    add("Tanh", ops::Tanh{}, {x.In(-4, 4)});
    add("TanhGrad", ops::TanhGrad{}, {x, x});
    add("ScaleBy", ops::ScaleBy{-2.5}, {x});
    // Numbers that every type has: a rounded one may be a unit of the case's type away.
    CaseOperand eighths = x;
    eighths.value = [](const std::vector<Elements>&, int64_t i) {
      return static_cast<double>(i % 31 - 15) / 8;
    };
    for (const DType type : {DType::kDouble, DType::kFloat, DType::kFloat16, DType::kBFloat16}) {
      add(StrCat("RoundTo_", Name(type)), ops::RoundTo{type}, {eighths});
    }
    add("Affine", ops::Affine{-2.5, 0.75}, {x});
    add("RaiseTo", ops::RaiseTo{1.5}, {x.In(0.1, 2)});
    add("SquareRoot", ops::SquareRoot{}, {x.In(0, 2)});
    CaseOperand whole = x.In(-2, 2);
    whole.is_integer = true;
    add("Sign", ops::Sign{}, {whole});
    add("SignBit", ops::SignBit{}, {x});
    add("Axpby", ops::Axpby{-1.5, 0.25}, {x, x});
    add("Divide", ops::Divide{}, {x, x.In(0.5, 2)});
    add("Dropout", ops::Dropout{0.4, 11}, {x});
    add("DropoutUnscaled", ops::Dropout{0.4, 11, /*scales=*/false}, {x});
    add("EltwiseSum", ops::EltwiseSum{}, {x, x});
    add("EltwiseSumRelu", ops::EltwiseSum{{}, {Relu()}}, {x, x});
    add("EltwiseSumCoefficients", ops::EltwiseSum{{1.0f, -2.0f, 0.5f}}, {x, x, x});
    add("EltwiseSumCoefficientsRelu", ops::EltwiseSum{{1.0f, -2.0f}, {Relu()}}, {x, x});
    add("EltwiseSum4", ops::EltwiseSum{}, {x, x, x, x});
    add("EltwiseSum4Relu", ops::EltwiseSum{{}, {Relu(0.25f)}}, {x, x, x, x});
    add("EltwiseSum5", ops::EltwiseSum{}, {x, x, x, x, x});
    add("EltwiseSumSwish", ops::EltwiseSum{{}, {{ops::Pointwise::Kind::kSwish, 1.5f}}}, {x, x});
    add("EltwiseProd", ops::EltwiseProd{}, {x, x, x});
    add("EltwiseProdGrad", ops::EltwiseProdGrad{1, true}, {x, x, x, x, x});
    add("EltwiseProdGradUnstable", ops::EltwiseProdGrad{1, false}, {x, x, x, p});
    cases->push_back(
        {"EltwiseMax" + x.shape.ToString(), ops::EltwiseMax{}, {x, x, x}, {x, x.Wide()}});
    add("EltwiseMaxGrad", ops::EltwiseMaxGrad{1}, {x.Labels(3).Wide(), x});
  }
  AddCombineCases(cases);
}

}  // namespace caffe::testing
