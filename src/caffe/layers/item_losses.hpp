// The loss of each item as a top, by which R-FCN's nets choose hard examples (BoxAnnotatorOHEM).
// The host computes it before the division by a normalizer, and it has no gradient.
#pragma once

#include <vector>

#include "caffe/graph_builder.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/pair_losses.hpp"

namespace caffe {

// One number for each label: 0 for an ignored one, NaN for one that is no class. `inputs` are those
// of ops::SoftmaxLoss.
void EmitLossOfEachLabel(GraphBuilder& graph, const ops::LabelRule& rule, const ops::Focus& focus,
                         const std::vector<Value*>& inputs, Value* top);

// One number for each position, summed over axis 1. `inputs` are those of ops::SmoothL1Loss.
void EmitLossOfEachPosition(GraphBuilder& graph, const ops::SmoothL1Loss& op,
                            const std::vector<Value*>& inputs, Value* top);

}  // namespace caffe
