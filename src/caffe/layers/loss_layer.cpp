#include "caffe/layers/loss_layer.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <vector>

namespace caffe {

ops::LabelRule ParseLabelRule(const LossParameter& loss, int axis, ops::Normalization by_default) {
  ops::LabelRule rule;
  rule.axis = axis;
  if (loss.has_ignore_label()) rule.ignore_label = loss.ignore_label();
  if (loss.has_normalization()) {
    rule.normalization = static_cast<ops::Normalization>(loss.normalization());
  } else if (loss.has_normalize()) {
    rule.normalization =
        loss.normalize() ? ops::Normalization::kValid : ops::Normalization::kBatchSize;
  } else {
    rule.normalization = by_default;
  }
  rule.pre_fixed_normalizer = loss.pre_fixed_normalizer();
  Require(rule.pre_fixed_normalizer >= 1, "pre_fixed_normalizer is ", rule.pre_fixed_normalizer,
          "; it must be at least 1");
  return rule;
}

void WarnOfUnusedLossFields(const LayerParameter& param,
                            std::initializer_list<std::string_view> used) {
  const LossParameter& loss = param.loss_param();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  loss.GetReflection()->ListFields(loss, &fields);
  for (const auto* field : fields) {
    LOG_IF(WARNING, std::find(used.begin(), used.end(), field->name()) == used.end())
        << "layer '" << param.name() << "' (" << param.type() << "): loss_param { " << field->name()
        << " } has no effect on this type of loss";
  }
}

void RequireLabelPerItem(const Shape& scores, const Shape& labels) {
  Require(scores.num_axes() >= 1 && labels.count() == scores[0], "the scores have shape ", scores,
          " and the labels ", labels, "; give one label per item");
}

void RequireEqualCounts(const Shape& first, const Shape& second) {
  Require(first.count() == second.count(), "the bottoms have shapes ", first, " and ", second,
          "; they must have as many elements");
}

bool AreSoftLabels(const Shape& scores, int axis, const Shape& labels) {
  if (scores[axis] < 2 || scores.count() != labels.count()) return false;
  for (int i = 0; i < std::max(scores.num_axes(), labels.num_axes()); ++i) {
    if (scores.LegacyExtent(i) != labels.LegacyExtent(i)) return false;
  }
  return true;
}

void RequireLabelPerPosition(const Shape& scores, int axis, const Shape& labels) {
  const int64_t positions = scores.count(0, axis) * scores.count(axis + 1);
  Require(labels.count() == positions, "the scores have shape ", scores, " with classes on axis ",
          axis, ", that is ", positions, " positions, but there are ", labels.count(),
          " labels (shape ", labels, "); give one label per position");
}

}  // namespace caffe
