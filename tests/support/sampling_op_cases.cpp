#include "caffe/ops/correlation.hpp"
#include "caffe/ops/sampling.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

void AddSampleCases(std::vector<OpCase>* cases) {
  for (const bool is_flow : {false, true}) {
    const std::string suffix = is_flow ? "Flow" : "";
    ops::SamplingOp op;
    op.channels = 3, op.height = 6, op.width = 7, op.rows = 6, op.columns = 7;
    if (!is_flow) op.rows = 4, op.columns = 9;
    op.is_relative = op.repeats_edge = is_flow;
    op.fill = 0.5f;
    const CaseOperand image = T({2, 3, 6, 7}), y = T({2, 3, op.rows, op.columns});
    const CaseOperand at = T({2, 2, op.rows, op.columns}).Wide().In(-2, is_flow ? 2 : 8);
    const auto add = [&](const std::string& name, Op what, std::vector<CaseOperand> in,
                         const CaseOperand& out) {
      cases->push_back({name + suffix, std::move(what), std::move(in), {out}});
    };
    add("Sample", ops::Sample{op}, {image, at}, y);
    add("SampleGradImage", ops::SampleGradImage{op}, {y, at}, image);
    add("SampleGradAt", ops::SampleGradAt{op}, {image, at, y}, at);
  }
  ops::AffineOp affine;
  affine.height = 6, affine.width = 7, affine.rows = 4, affine.columns = 9;
  const CaseOperand grid = T({3, 2, 4, 9}).Wide();
  cases->push_back({"AffineGrid", ops::AffineGrid{affine}, {T({3, 6}).Wide()}, {grid}});
  cases->push_back({"AffineGridGrad", ops::AffineGridGrad{affine}, {grid}, {T({3, 6}).Wide()}});
  affine.learned = 2;
  for (int k = 0; k < 6; ++k) affine.operand[k] = k == 1 ? 0 : k == 5 ? 1 : -1, affine.fixed[k] = k;
  cases->push_back({"AffineGridOfTwo", ops::AffineGrid{affine}, {T({3, 2}).Wide()}, {grid}});
  cases->push_back(
      {"AffineGridGradOfTwo", ops::AffineGridGrad{affine}, {grid}, {T({3, 2}).Wide()}});
}

void AddCorrelationCases(std::vector<OpCase>* cases) {
  const auto add = [&](const std::string& suffix, const ops::CorrelationOp& op) {
    const CaseOperand image = T({2, 3, 6, 7}), y = T({2, op.displacements(), op.rows, op.columns});
    cases->push_back({"Correlation" + suffix, ops::Correlation{op}, {image, image}, {y}});
    for (const bool of_second : {false, true}) {
      cases->push_back({"CorrelationGrad" + suffix + (of_second ? "OfSecond" : "OfFirst"),
                        ops::CorrelationGrad(op, of_second),
                        {image, image, y},
                        {image}});
    }
  };
  ops::CorrelationOp op;
  op.channels = 3, op.height = 6, op.width = 7, op.rows = 3, op.columns = 4;
  op.kernel = 3, op.stride_1 = 2, op.stride_2 = 2;
  op.axes[0] = op.axes[1] = {.pad = 3, .reach = 3, .first = -1, .count = 3};
  add("", op);
  op.subtracts = true;
  add("Subtracting", op);
  op.axes[0] = {}, op.rows = 2;
  op.axes[1] = {.pad = 3, .reach = 3, .first = -2, .count = 2};
  add("Across", op);
}

}  // namespace

void AddSamplingCases(std::vector<OpCase>* cases) {
  AddSampleCases(cases);
  AddCorrelationCases(cases);
}

}  // namespace caffe::testing
