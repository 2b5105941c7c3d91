#include "caffe/ops/detections.hpp"

#include <cmath>

#include "caffe/core/saturating_product.hpp"
#include "caffe/ops/forms/fields.hpp"

namespace caffe::ops {

CAFFE_FIELDS(DetectionOutput, classes, background, shares_location, code, multiplies, least_score,
             top_k, overlap, eta, keep_top_k)
CAFFE_FIELDS(VotedDetectionOutput, detections, least_overlap)

static void CheckOperands(const DetectionOutput& op, const OperandCheck& check) {
  check.AtMost(3);
  const TensorDesc &loc = check.input(0), &conf = check.input(1), &priors = check.input(2);
  for (const TensorDesc* operand : {&loc, &conf, &priors, &check.output()}) {
    OperandCheck::IsPlain(*operand);
    Require(!Is8Bit(operand->dtype), "detections of bytes");
  }
  const int64_t boxes = priors.shape.count() / 8;
  Require(op.classes >= 1, "detections of ", op.classes, " classes");
  Require(op.eta > 0 && op.eta <= 1 && op.overlap >= 0, "detections with eta ", op.eta,
          " and overlaps up to ", op.overlap);
  Require(op.code >= BoxCode::kCorner && op.code <= BoxCode::kCornerSize, "box code ",
          static_cast<int>(op.code));
  Require(loc.shape.num_axes() >= 1 && boxes >= 1, "detections of ", loc.shape, " by ",
          priors.shape);
  const int64_t items = loc.shape[0], locations = op.shares_location ? 1 : op.classes;
  OperandCheck::SameCount(loc.shape.count(), SaturatingProduct({items, boxes, locations, 4}));
  OperandCheck::SameCount(conf.shape.count(), SaturatingProduct({items, boxes, op.classes}));
  const Shape rows{1, 1, op.MostRows(items, boxes), kDetectionColumns};
  Require(check.output().shape == rows, "detections in ", check.output().shape, "; they take ",
          rows);
}

static void CheckOperands(const VotedDetectionOutput& op, const OperandCheck& check) {
  Require(op.least_overlap > 0 && op.least_overlap <= 1, "votes of boxes that overlap by ",
          op.least_overlap);
  CheckOperands(op.detections, check);
}

CAFFE_REGISTER_OP_FORM(DetectionOutput);
CAFFE_REGISTER_OP_FORM(VotedDetectionOutput);

}  // namespace caffe::ops
