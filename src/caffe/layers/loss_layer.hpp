// What loss layers have in common.
#pragma once

#include <initializer_list>
#include <string_view>

#include "caffe/error.hpp"
#include "caffe/layer.hpp"
#include "caffe/ops/loss.hpp"

namespace caffe {

// Two bottoms with equal first axes, a scalar top that is weighed with 1 and made when missing.
class LossLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1, .is_loss = true}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].LegacyExtent(0) == bottoms[1].LegacyExtent(0), "the bottoms have ",
            bottoms[0].LegacyExtent(0), " and ", bottoms[1].LegacyExtent(0), " items (shapes ",
            bottoms[0], " and ", bottoms[1], "); they must agree");
    return {Shape{}};
  }

  // Labels get no gradient.
  bool AllowForceBackward(int bottom) const override { return bottom == 0; }
};

// loss_param's normalisation and ignore_label, with Caffe's rule for the old `normalize` field.
ops::LabelRule ParseLabelRule(const LossParameter& loss, int axis, ops::Normalization by_default);

// Warns of fields of loss_param that are set and not among those that the layer uses.
void WarnOfUnusedLossFields(const LayerParameter& param,
                            std::initializer_list<std::string_view> used);

// One label per item, or an error; two bottoms of as many elements, or an error.
void RequireLabelPerItem(const Shape& scores, const Shape& labels);
void RequireEqualCounts(const Shape& first, const Shape& second);

// Whether the labels are a distribution over the classes at each position: they have the scores'
// shape, axes of 1 at the end aside. With one class they are labels.
bool AreSoftLabels(const Shape& scores, int axis, const Shape& labels);

// One label per position of the scores' other axes.
void RequireLabelPerPosition(const Shape& scores, int axis, const Shape& labels);

}  // namespace caffe
