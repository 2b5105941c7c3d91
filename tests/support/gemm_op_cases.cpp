#include "caffe/ops/gemm.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// Batches of one axis and of several; factors that are broadcast, and products that are added up.
void AddBatchedGemmCases(std::vector<OpCase>* cases) {
  struct Batch {
    const char* name;
    std::vector<int64_t> batch, a_steps, b_steps, c_steps;
    int64_t a, b, c;  // matrices
  };
  const std::vector<Batch> batches = {
      {"", {6}, {1}, {1}, {1}, 6, 6, 6},
      {"Same", {5}, {1}, {0}, {1}, 5, 1, 5},
      {"Groups", {2, 3}, {3, 1}, {1, 0}, {3, 1}, 6, 2, 6},
      {"Rows", {2, 3, 2}, {6, 2, 1}, {2, 0, 1}, {6, 2, 1}, 12, 4, 12},
      {"Sum", {4}, {1}, {1}, {0}, 4, 4, 1},
      {"SumOfGroups", {2, 3}, {3, 1}, {3, 1}, {1, 0}, 6, 6, 2},
      {"SumOverFirst", {3, 2}, {2, 1}, {2, 1}, {0, 1}, 6, 6, 2},
  };
  struct Size {
    int64_t rows, columns, inner;
  };
  for (const Size s : {Size{5, 7, 9}, Size{33, 16, 40}, Size{64, 64, 32}, Size{1, 50, 17}}) {
    for (const Batch& batch : batches) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          const ops::BatchedGemm op{.rows = s.rows,
                                    .columns = s.columns,
                                    .inner = s.inner,
                                    .transpose_a = ta,
                                    .transpose_b = tb,
                                    .batch = batch.batch,
                                    .a_steps = batch.a_steps,
                                    .b_steps = batch.b_steps,
                                    .c_steps = batch.c_steps};
          const CaseOperand a = ta ? T({batch.a, s.inner, s.rows}) : T({batch.a, s.rows, s.inner});
          const CaseOperand b =
              tb ? T({batch.b, s.columns, s.inner}) : T({batch.b, s.inner, s.columns});
          const CaseOperand c = T({batch.c, s.rows, s.columns});
          const std::string name = StrCat("BatchedGemm", batch.name, s.rows, "x", s.columns, "x",
                                          s.inner, ta ? "T" : "N", tb ? "T" : "N");
          cases->push_back({name, op, {a, b}, {c}, {0}});
          cases->push_back({name + "Wide", op, {a, b}, {c.Wide()}, {0}});
        }
      }
    }
  }
}

// Large weights that do not change, which some kernels convert in parts; the last part is smaller.
void AddLargeWeights(std::vector<OpCase>* cases) {
  constexpr int64_t kRows = 2, kColumns = 65, kInner = 65536;
  const ops::Gemm op{kRows, kColumns, kInner, false, true};
  const CaseOperand a = T({kRows, kInner}), b = T({kColumns, kInner}).Constant();
  const CaseOperand c = T({kRows, kColumns});
  cases->push_back({"GemmLargeWeights", op, {a, b}, {c}, {0}});
  cases->push_back({"GemmLargeWeightsBias", op, {a, b, T({kColumns}).Wide()}, {c}, {0}});
}

}  // namespace

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
  AddBatchedGemmCases(cases);
  AddLargeWeights(cases);
}

}  // namespace caffe::testing
