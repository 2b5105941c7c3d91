#include "caffe/ops/gemm.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {

void AddGemmCases(std::vector<OpCase>* cases) {
  struct Size {
    int64_t rows, columns, inner;
  };
  for (const Size s :
       {Size{1, 40, 64}, Size{3, 33, 50}, Size{64, 10, 500}, Size{37, 45, 29}, Size{8, 300, 257}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const ops::Gemm op{s.rows, s.columns, s.inner, ta, tb};
        const CaseOperand a = ta ? T({s.inner, s.rows}) : T({s.rows, s.inner});
        const CaseOperand b = tb ? T({s.columns, s.inner}) : T({s.inner, s.columns});
        const std::string name =
            StrCat("Gemm", s.rows, "x", s.columns, "x", s.inner, ta ? "T" : "N", tb ? "T" : "N");
        const CaseOperand c = T({s.rows, s.columns});
        cases->push_back({name, op, {a, b}, {c}, {0}});
        cases->push_back({name + "Bias", op, {a, b, T({s.columns}).Wide()}, {c}, {0}});
        cases->push_back({name + "Wide", op, {a, b}, {c.Wide()}, {0}});
        ops::Gemm relu = op;
        relu.epilogue = {Relu()};
        cases->push_back({name + "Relu", relu, {a, b}, {c}, {}});
      }
    }
  }
}

}  // namespace caffe::testing
