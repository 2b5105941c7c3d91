#include "caffe/ops/recurrence.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// Operands of a recurrence of a size. `h_rows` and `h_state`: those of h.
struct Operands {
  ops::Recurrence sizes;
  CaseOperand rows, state, cont, h_rows, h_state;

  explicit Operands(const ops::Recurrence& recurrence)
      : sizes(recurrence),
        rows(T({sizes.steps * sizes.items, sizes.width})),
        state(T({sizes.items, sizes.width}).Wide()),
        cont(T({sizes.steps, sizes.items}).Wide().Labels(2)),
        h_rows(T({sizes.steps * sizes.items, sizes.h_width()})),
        h_state(T({sizes.items, sizes.h_width()}).Wide()) {}

  CaseOperand Gates(int64_t gates) const {
    return T({sizes.steps * sizes.items, gates * sizes.width});
  }
  // Small, so that steps do not amplify the rounding of those before them.
  CaseOperand Weights(int64_t gates) const {
    return T({gates * sizes.width, sizes.h_width()}).In(-0.2, 0.2);
  }
  CaseOperand Projection() const { return T({sizes.projection, sizes.width}).In(-0.4, 0.4); }
};

}  // namespace

void AddRecurrenceCases(std::vector<OpCase>* cases) {
  const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                       std::vector<CaseOperand> out) {
    cases->push_back({name, std::move(op), std::move(in), std::move(out)});
  };
  // Sizes that fill vectors and blocks of kernels and sizes that do not, one step, one item.
  for (const ops::Recurrence& sizes : std::vector<ops::Recurrence>{
           {4, 3, 5}, {2, 17, 32}, {5, 2, 34, true}, {1, 4, 6}, {2, 2, 1, true}}) {
    const Operands x(sizes);
    const std::string suffix =
        StrCat(sizes.steps, "x", sizes.items, "x", sizes.width, sizes.reverse ? "Reverse" : "");
    const CaseOperand wide = x.rows.Wide(), none = Absent(), gate = wide.In(0, 1);
    add("LstmSteps" + suffix, ops::LstmSteps{sizes},
        {x.Gates(4), x.Weights(4), x.cont, x.state, x.state},
        {x.rows, x.Gates(4).Wide(), wide, x.state, x.state});
    add("LstmStepsAlone" + suffix, ops::LstmSteps{sizes},
        {x.Gates(4), x.Weights(4), none, none, none}, {x.rows});
    add("LstmStepsGrad" + suffix, ops::LstmStepsGrad{sizes},
        {x.Weights(4), x.cont, x.state, x.state, x.rows, x.Gates(4).Wide(), wide, x.rows, x.state,
         x.state},
        {x.Gates(4), x.rows, x.state, x.state});
    add("LstmStepsGradLimited" + suffix, ops::LstmStepsGrad{sizes, 0.05F},
        {x.Weights(4), none, none, none, x.rows, x.Gates(4).Wide(), wide, x.rows},
        {x.Gates(4), x.rows});
    add("LstmStepsGradOfLast" + suffix, ops::LstmStepsGrad{sizes},
        {x.Weights(4), x.cont, x.state, x.state, x.rows, x.Gates(4).Wide(), wide, none, x.state},
        {x.Gates(4), none, x.state});
    const CaseOperand w = x.Weights(1);
    add("GruSteps" + suffix, ops::GruSteps{sizes}, {x.Gates(3), w, w, w, x.cont, x.state},
        {x.rows, wide, wide, wide, x.state});
    add("GruStepsAlone" + suffix, ops::GruSteps{sizes}, {x.Gates(3), w, w, w}, {x.rows});
    add("GruStepsGrad" + suffix, ops::GruStepsGrad{sizes},
        {w, w, w, x.cont, x.state, x.rows, gate, gate, wide, x.rows, x.state},
        {x.rows, x.rows, x.rows, x.rows, x.rows, x.state});
    add("GruStepsGradAlone" + suffix, ops::GruStepsGrad{sizes},
        {w, w, w, none, none, x.rows, gate, gate, wide, x.rows},
        {x.rows, x.rows, x.rows, x.rows, x.rows});
    const CaseOperand bias = T({sizes.width}).Wide();
    add("GruResetAfterSteps" + suffix, ops::GruResetAfterSteps{sizes},
        {x.Gates(3), w, w, w, x.cont, x.state, bias}, {x.rows, wide, wide, wide, wide, x.state});
    add("GruResetAfterStepsAlone" + suffix, ops::GruResetAfterSteps{sizes},
        {x.Gates(3), w, w, w, none, none, bias}, {x.rows});
    add("GruResetAfterStepsGrad" + suffix, ops::GruResetAfterStepsGrad{sizes},
        {w, w, w, x.cont, x.state, x.rows, gate, gate, wide, wide, x.rows, x.state},
        {x.rows, x.rows, x.rows, x.rows, x.rows, x.state});
    add("GruResetAfterStepsGradAlone" + suffix, ops::GruResetAfterStepsGrad{sizes},
        {w, w, w, none, none, x.rows, gate, gate, wide, wide, x.rows},
        {x.rows, x.rows, x.rows, x.rows, x.rows});
    add("RnnSteps" + suffix, ops::RnnSteps{sizes}, {x.Gates(1), w, x.cont, x.state},
        {x.rows, x.state});
    add("RnnStepsAlone" + suffix, ops::RnnSteps{sizes}, {x.Gates(1), w}, {x.rows});
    add("RnnStepsGrad" + suffix, ops::RnnStepsGrad{sizes},
        {w, x.cont, x.state, x.rows, x.rows, x.state}, {x.rows, x.rows, x.state});
    add("RnnStepsGradAlone" + suffix, ops::RnnStepsGrad{sizes}, {w, none, none, x.rows, x.rows},
        {x.rows, x.rows});
  }
  for (const ops::Recurrence& sizes : std::vector<ops::Recurrence>{{4, 3, 5, false, 2},
                                                                   {1, 17, 40, false, 32},
                                                                   {5, 2, 34, true, 6},
                                                                   {1, 4, 6, false, 1},
                                                                   {3, 2, 36, true, 35}}) {
    const Operands x(sizes);
    const std::string suffix = StrCat("Projected", sizes.steps, "x", sizes.items, "x", sizes.width,
                                      "To", sizes.projection, sizes.reverse ? "Reverse" : "");
    const CaseOperand wide = x.rows.Wide(), none = Absent();
    add("LstmSteps" + suffix, ops::LstmSteps{sizes},
        {x.Gates(4), x.Weights(4), x.cont, x.h_state, x.state, x.Projection()},
        {x.h_rows, x.Gates(4).Wide(), wide, x.h_state, x.state, x.rows});
    add("LstmStepsAlone" + suffix, ops::LstmSteps{sizes},
        {x.Gates(4), x.Weights(4), none, none, none, x.Projection()}, {x.h_rows});
    add("LstmStepsGrad" + suffix, ops::LstmStepsGrad{sizes},
        {x.Weights(4), x.cont, x.h_state, x.state, x.h_rows, x.Gates(4).Wide(), wide, x.h_rows,
         x.h_state, x.state, x.Projection()},
        {x.Gates(4), x.h_rows, x.h_state, x.state, x.h_rows});
    add("LstmStepsGradOfLast" + suffix, ops::LstmStepsGrad{sizes},
        {x.Weights(4), x.cont, x.h_state, x.state, x.h_rows, x.Gates(4).Wide(), wide, none,
         x.h_state, none, x.Projection()},
        {x.Gates(4), none, x.h_state, none, none});
  }
}

}  // namespace caffe::testing
