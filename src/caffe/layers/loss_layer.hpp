// Common base of loss layers.
#pragma once

#include <initializer_list>
#include <string_view>

#include "caffe/error.hpp"
#include "caffe/layer.hpp"
#include "caffe/ops/loss.hpp"

namespace caffe {

// Two bottoms with equal first axes, and a scalar top with weight 1 that is created if missing.
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

// loss_param's normalisation and ignore_label, with Caffe's handling of the old `normalize` field.
ops::LabelRule ParseLabelRule(const LossParameter& loss, int axis, ops::Normalization by_default);

// Warns of fields of loss_param that are set but not used by the layer.
void WarnOfUnusedLossFields(const LayerParameter& param,
                            std::initializer_list<std::string_view> used);

// RequireLabelPerItem() requires one label per item, RequireEqualCounts() two bottoms of equal
// counts.
void RequireLabelPerItem(const Shape& scores, const Shape& labels);
void RequireEqualCounts(const Shape& first, const Shape& second);

// True if the labels are a distribution over the classes at each position: they have the scores'
// shape, except for trailing axes of extent 1. With a single class they are labels.
bool AreSoftLabels(const Shape& scores, int axis, const Shape& labels);

// Requires one label per position of the scores' other axes.
void RequireLabelPerPosition(const Shape& scores, int axis, const Shape& labels);

}  // namespace caffe
