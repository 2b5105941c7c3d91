#include <cmath>

#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/lstm_unit.hpp"
#include "caffe/ops/prelu.hpp"
#include "caffe/ops/reduce.hpp"
#include "caffe/ops/row_norm.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// (a, b, gamma) -> (s, y, rms)
ops::Fused SumRmsNorm() {
  using ops::Fused;
  return {{{ops::EltwiseSum{}, {Fused::Input(0), Fused::Input(1)}, {Fused::Output(0)}},
           {ops::RmsNorm{2, 1e-3},
            {Fused::Output(0), Fused::Input(2)},
            {Fused::Output(1), Fused::Output(2)}}}};
}

}  // namespace

void AddReduceCases(std::vector<OpCase>* cases) {
  const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                       std::vector<CaseOperand> out, OperandSet accumulates = {}) {
    cases->push_back({name, std::move(op), std::move(in), std::move(out), accumulates});
  };
  for (const auto& [name, kind] : std::vector<std::pair<std::string, ops::Reduction>>{
           {"Sum", ops::Reduction::kSum},
           {"AbsSum", ops::Reduction::kAbsSum},
           {"SumOfSquares", ops::Reduction::kSumOfSquares},
           {"Mean", ops::Reduction::kMean}}) {
    const CaseOperand x = T({3, 5, 40});
    add("Reduce" + name, ops::Reduce{kind, 1.5}, {x}, {T({3, 5})});
    add("ReduceAll" + name, ops::Reduce{kind, -0.5}, {x}, {T({})});
    add("ReduceGrad" + name, ops::ReduceGrad{kind, 1.5}, {x, T({3, 5})}, {x});
    add("ReduceAllGrad" + name, ops::ReduceGrad{kind, -0.5}, {x, T({})}, {x});
  }
  const CaseOperand ties = T({4, 6, 5}).Labels(4);
  add("ArgMax", ops::ArgMax{1, 3}, {ties}, {T({4, 3, 5}).Wide(), T({4, 3, 5}).Wide()});
  add("ArgMaxLast", ops::ArgMax{2, 1}, {ties}, {T({4, 6, 1}).Wide()});
  add("ArgMaxValues", ops::ArgMax{0, 2}, {ties}, {Absent(), T({2, 6, 5}).Wide()});
  // Each row of 6 has some NaN and both infinities.
  CaseOperand broken = ties;
  broken.value = [](const std::vector<Elements>&, int64_t i) {
    const int64_t k = i * 7 % 11;
    return k < 3 ? NAN : k == 3 ? -INFINITY : k == 4 ? INFINITY : static_cast<double>(k);
  };
  add("ArgMaxNaN", ops::ArgMax{1, 6}, {broken}, {T({4, 6, 5}).Wide()});
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{2, 5, 4, 3}, {3, 70}, {2, 3, 5}}) {
    const CaseOperand x = T(dims);
    const std::string suffix = x.shape.ToString();
    const ops::BroadcastAxes channels{1, 1}, all{0, 0};
    add("PRelu" + suffix, ops::PRelu{channels}, {x, T({dims[1]}).Wide()}, {x});
    add("PReluShared" + suffix, ops::PRelu{all}, {x, T({}).Wide()}, {x});
    add("PReluGrad" + suffix, ops::PReluGrad{channels}, {x, T({dims[1]}).Wide(), x}, {x});
    add("PReluGradShared" + suffix, ops::PReluGrad{all}, {x, T({}).Wide(), x}, {x});
    add("PReluGradSlope" + suffix, ops::PReluGradSlope{channels}, {x, x}, {T({dims[1]}).Wide()},
        {0});
    add("PReluGradSlopeShared" + suffix, ops::PReluGradSlope{all}, {x, x}, {T({}).Wide()}, {0});
  }
  const CaseOperand unit = T({4, 5}).Wide(), gates = T({4, 20}).Wide().In(-3, 3),
                    cont = T({4}).Wide().Labels(2);
  add("LstmUnit", ops::LstmUnit{}, {unit, gates, cont}, {unit, unit});
  add("LstmUnitGrad", ops::LstmUnitGrad{}, {unit, gates, cont, unit, unit, unit}, {unit, gates});
  add("LstmUnitGradLast", ops::LstmUnitGrad{}, {unit, gates, cont, unit, Absent(), unit},
      {unit, gates});
  add("LstmUnitGradFirst", ops::LstmUnitGrad{}, {unit, gates, cont, unit, unit, Absent()},
      {Absent(), gates});
  const CaseOperand x = T({3, 4, 5, 6});
  for (const int axis : {1, 2}) {
    const CaseOperand rows = T({axis == 1 ? 3 : 12}).Wide().In(0.5, 2);
    const std::string suffix = StrCat(axis);
    add("Mvn" + suffix, ops::Mvn{axis, true, 1e-3}, {x}, {x, rows});
    add("MvnEpsInRoot" + suffix, ops::Mvn{axis, true, 0.5, true}, {x}, {x, rows});
    add("MvnMeanOnly" + suffix, ops::Mvn{axis, false}, {x}, {x});
    add("MvnGrad" + suffix, ops::MvnGrad{axis, true}, {x, rows, x}, {x});
    add("MvnGradMeanOnly" + suffix, ops::MvnGrad{axis, false}, {Absent(), Absent(), x}, {x});
    const CaseOperand gamma = T({x.shape.count(axis)}).Wide();
    add("RmsNorm" + suffix, ops::RmsNorm{axis, 1e-3}, {x, gamma}, {x, rows});
    add("RmsNormUnscaled" + suffix, ops::RmsNorm{axis, 0.5}, {x}, {x});
    add("RmsNormGrad" + suffix, ops::RmsNormGrad{axis}, {x, rows, x, gamma}, {x});
    add("RmsNormGradUnscaled" + suffix, ops::RmsNormGrad{axis}, {x, rows, x}, {x});
  }
  const CaseOperand tokens = T({3, 5, 70}), gamma = T({70}).Wide();
  const CaseOperand rms = T({15}).Wide().In(0.5, 2);
  add("SumRmsNorm", SumRmsNorm(), {tokens, tokens, gamma}, {tokens, tokens, rms});
  add("SumRmsNormUnscaled", SumRmsNorm(), {tokens, tokens, Absent()}, {tokens, tokens});
  for (const bool across : {true, false}) {
    const CaseOperand norms = T({across ? 3 : 90}).Wide().In(0.5, 2);
    const std::string suffix = across ? "PerItem" : "PerPosition";
    add("L2Normalize" + suffix, ops::L2Normalize{across, 1e-10}, {x}, {x, norms});
    add("L2NormalizeGrad" + suffix, ops::L2NormalizeGrad{across}, {x, norms, x}, {x});
  }
}

}  // namespace caffe::testing
