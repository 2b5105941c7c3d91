#include "caffe/ops/attention.hpp"
#include "caffe/ops/rotary.hpp"
#include "caffe/ops/slide_rows.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

ops::AttentionSizes SizesOf(int64_t items, int64_t queries, int64_t keys, int64_t width) {
  ops::AttentionSizes sizes;
  sizes.items = items;
  sizes.queries = queries;
  sizes.keys = keys;
  sizes.width = sizes.value_width = width;
  sizes.scale = 0.6;
  return sizes;
}

// Attention and its gradient. The gradient's y and lse are random as well: what it computes is
// defined for any.
void Add(const std::string& name, const ops::AttentionSizes& sizes, bool has_mask,
         std::vector<OpCase>* cases) {
  const CaseOperand q = T({sizes.items, sizes.queries, sizes.q_step()}),
                    k = sizes.packed ? Absent() : T({sizes.items, sizes.keys, sizes.k_step()}),
                    v = sizes.packed ? Absent() : T({sizes.items, sizes.keys, sizes.v_step()}),
                    y = T({sizes.items, sizes.queries, sizes.y_step()}),
                    lse = T({sizes.items, sizes.heads, sizes.queries}).Wide().In(1, 3),
                    mask = has_mask ? T({sizes.items, sizes.keys}).Wide().Labels(2) : Absent();
  cases->push_back({"Attention" + name, ops::Attention{sizes}, {q, k, v, mask}, {y, lse}});
  cases->push_back({"AttentionAlone" + name, ops::Attention{sizes}, {q, k, v, mask}, {y}});
  cases->push_back(
      {"AttentionGrad" + name, ops::AttentionGrad{sizes}, {q, k, v, mask, y, lse, y}, {q, k, v}});
}

}  // namespace

void AddAttentionCases(std::vector<OpCase>* cases) {
  Add("", SizesOf(2, 3, 5, 4), false, cases);
  ops::AttentionSizes sizes = SizesOf(2, 40, 70, 6);  // more than a block of queries
  sizes.value_width = 34;
  Add("Blocks", sizes, true, cases);
  sizes = SizesOf(1, 35, 35, 8);
  sizes.heads = 4, sizes.kv_heads = 2, sizes.causal = sizes.packed = true;
  Add("Packed", sizes, true, cases);
  sizes = SizesOf(2, 5, 3, 3);  // the first queries see nothing
  sizes.heads = sizes.kv_heads = 2, sizes.causal = true;
  Add("CausalOdd", sizes, false, cases);
  const CaseOperand x = T({2, 5, 11});
  for (const bool inverse : {false, true}) {
    cases->push_back(
        {inverse ? "RotaryInverse" : "Rotary",
         ops::Rotary{
             .positions = 5, .heads = 2, .width = 4, .others = 3, .base = 50, .inverse = inverse},
         {x},
         {x}});
  }
  const CaseOperand start = T({2}).Wide().Labels(300), cont = T({2}).Wide().Labels(2);
  const ops::Rotary turns{.positions = 5, .heads = 2, .width = 4, .others = 3, .base = 50};
  cases->push_back({"RotaryFrom", turns, {x, start, cont}, {x, start}});
  cases->push_back({"RotaryFromWithoutCont", turns, {x, start}, {x}});
  const auto slide = [&](const std::string& name, ops::SlideRows op, const CaseOperand& cont,
                         const CaseOperand& rows) {
    const CaseOperand kept = T({2, op.length, op.columns}).Wide();
    cases->push_back({name, op, {kept, cont, rows}, {kept}});
  };
  slide("SlideRows", {.rows = 3, .length = 7, .columns = 4, .step = 9, .offset = 4}, cont,
        T({2, 3, 9}));
  slide("SlideRowsAll", {.rows = 3, .length = 3, .columns = 5, .step = 5}, Absent(), T({2, 3, 5}));
  slide("SlideRowsOfOnes", {.rows = 2, .length = 6, .columns = 1}, cont, Absent());
}

}  // namespace caffe::testing
