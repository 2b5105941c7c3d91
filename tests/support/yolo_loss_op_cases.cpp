#include "caffe/ops/yolo_loss.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// An operand of fixed numbers, repeated as needed.
CaseOperand Given(std::vector<int64_t> dims, std::vector<double> numbers) {
  CaseOperand operand = T(std::move(dims)).Wide();
  operand.value = [numbers = std::move(numbers)](const std::vector<Elements>&, int64_t i) {
    return numbers[static_cast<size_t>(i) % numbers.size()];
  };
  return operand;
}

}  // namespace

void AddYoloLossCases(std::vector<OpCase>* cases) {
  ops::YoloLossOp op;
  op.boxes = 2, op.classes = 3, op.height = 3, op.width = 4, op.rows = 3, op.anchors = 3;
  for (int i = 0; i < 3; ++i) op.widths[i] = 0.5f + static_cast<float>(i), op.heights[i] = 1;
  op.mask[0] = 2, op.mask[1] = 0;
  op.free_above = 0.3f, op.coord_scale = 2, op.noobject_scale = 0.5f;
  const CaseOperand map = T({2, 16, 3, 4}).In(-2, 2), matches = T({2, 2, 3, 4}).Wide();
  // (class, x, y, width, height); the third row marks the end of a list.
  const CaseOperand labels =
      Given({2, 3, 5}, {2, 0.4, 0.5, 0.15, 0.3, 0, 0.9, 0.1, 0.7, 0.4, 0, 0, 0, 0, 0});
  const CaseOperand of_ssd =
      Given({1, 1, 3, 8}, {0, 1,   0,   0.1, 0.2, 0.3, 0.5, 0,  1,  3,  0,  0.5,
                           0, 0.9, 0.3, 0,   -1,  -1,  -1,  -1, -1, -1, -1, -1});
  const auto add = [&](const std::string& suffix, const ops::YoloLossOp& options,
                       const CaseOperand& truth) {
    // Free, none, and the first two rows.
    const CaseOperand match = Given({2, 2, 3, 4}, {0, -1, 1, 0, options.is_of_ssd ? 0.0 : 2.0});
    cases->push_back({"YoloMatches" + suffix, ops::YoloMatches(options), {map, truth}, {matches}});
    cases->push_back({"YoloTerms" + suffix,
                      ops::YoloTerms(options),
                      {map, truth, match},
                      {T({2, 16, 3, 4}).Wide()}});
    cases->push_back({"YoloGrad" + suffix,
                      ops::YoloGrad(options, 0.5),
                      {map, truth, match, T({}).Wide().In(0.5, 1.5)},
                      {map}});
  };
  add("", op, labels);
  op.matches_anchors = false, op.learns_overlap = true;
  add("OfPredictedSizes", op, labels);
  op.of_place = op.of_class = ops::YoloTarget::kCrossEntropy;
  op.matches_anchors = op.weighs_size = op.keeps_labels = true, op.learns_overlap = false;
  add("CrossEntropy", op, labels);
  op.is_of_ssd = true;
  add("OfAnnotatedData", op, of_ssd);
}

}  // namespace caffe::testing
