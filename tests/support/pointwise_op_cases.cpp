#include "caffe/ops/arrays.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/random.hpp"
#include "caffe/ops/round_to.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
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
}

}  // namespace caffe::testing
