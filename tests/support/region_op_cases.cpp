#include "caffe/ops/detections.hpp"
#include "caffe/ops/regions.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// Boxes of two items on images of 80 x 56 pixels, some partly or completely outside.
CaseOperand Boxes() {
  static const std::vector<double> kRows = {0, 0,   0,   79,  55,  //
                                            1, 8,   4,   30,  44,  //
                                            1, -20, -12, 25,  17,  //
                                            0, 60,  30,  95,  90,  //
                                            1, 33,  21,  33,  21,  //
                                            0, 120, 90,  150, 110};
  CaseOperand boxes = T({6, 5}).Wide();
  boxes.value = [](const std::vector<Elements>&, int64_t i) { return kRows[i]; };
  return boxes;
}

// Two items, six prior boxes that overlap their neighbours, three classes.
OpCase Detections() {
  CaseOperand priors = T({1, 2, 24}).Wide();
  priors.value = [](const std::vector<Elements>&, int64_t i) {
    return i >= 24 ? 0.1 : 0.1 * double(i / 4) + (i % 4 < 2 ? 0 : 0.25);
  };
  const ops::DetectionOutput op{.classes = 3,
                                .code = ops::BoxCode::kCenterSize,
                                .least_score = 0.2,
                                .top_k = 4,
                                .overlap = 0.45,
                                .keep_top_k = 5};
  return {.name = "DetectionOutput",
          .op = op,
          .inputs = {T({2, 24}), T({2, 18}).In(0, 1), priors},
          .outputs = {T({1, 1, 10, 7}).Wide()},
          .accumulates = {},
          .is_of_programs = true};
}

OpCase VotedDetections() {
  OpCase voted = Detections();
  voted.name = "VotedDetectionOutput";
  voted.op = ops::VotedDetectionOutput{*voted.op.As<ops::DetectionOutput>(), 0.3};
  return voted;
}

}  // namespace

void AddRegionCases(std::vector<OpCase>* cases) {
  const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                       CaseOperand out) {
    cases->push_back({name, std::move(op), std::move(in), {std::move(out)}});
  };
  const CaseOperand rois = Boxes(), map = T({2, 3, 7, 10});
  const CaseOperand cells = T({6, 3, 3, 4});
  const ops::RegionSizes sizes{.regions = 6,
                               .items = 2,
                               .channels = 3,
                               .height = 7,
                               .width = 10,
                               .cell_channels = 3,
                               .rows = 3,
                               .columns = 4,
                               .scale = 0.125f};
  CaseOperand winner = cells.Wide();
  winner.value = [](const std::vector<Elements>&, int64_t i) {
    return i % 5 == 0 ? -1.0 : static_cast<double>(i * 13 % 70);
  };
  add("RegionWinner", ops::RegionWinner(sizes), {map, rois}, cells.Wide());
  add("RegionMax", ops::RegionMax(sizes), {map, rois, winner}, cells);
  add("RegionMaxGrad", ops::RegionMaxGrad(sizes), {cells, rois, winner}, map);
  for (const int samples : {0, 2}) {
    const std::string suffix = std::to_string(samples);
    add("RegionAlign" + suffix, ops::RegionAlign(sizes, samples), {map, rois}, cells);
    add("RegionAlignGrad" + suffix, ops::RegionAlignGrad(sizes, samples), {cells, rois}, map);
  }
  ops::RegionSizes sensitive = sizes;
  sensitive.channels = 18, sensitive.cell_channels = 2, sensitive.columns = 3;
  const CaseOperand wide_map = T({2, 18, 7, 10}), few_cells = T({6, 2, 3, 3});
  add("SensitiveRegionMean", ops::SensitiveRegionMean(sensitive), {wide_map, rois}, few_cells);
  add("SensitiveRegionMeanGrad", ops::SensitiveRegionMeanGrad(sensitive), {few_cells, rois},
      wide_map);
  cases->push_back(Detections());
  cases->push_back(VotedDetections());
}

}  // namespace caffe::testing
