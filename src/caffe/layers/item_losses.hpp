// The loss of each item as a top, with which R-FCN's nets select hard examples (BoxAnnotatorOHEM).
// The host computes it before the division by a normalizer; it has no gradient.
#pragma once

#include <vector>

#include "caffe/graph_builder.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/pair_losses.hpp"

namespace caffe {

// Emits one number per label: 0 for an ignored one, NaN for one that is not a class. `inputs` are
// those of ops::SoftmaxLoss.
void EmitLossOfEachLabel(GraphBuilder& graph, const ops::LabelRule& rule, const ops::Focus& focus,
                         const std::vector<Value*>& inputs, Value* top);

// Emits one number per position, summed over axis 1. `inputs` are those of ops::SmoothL1Loss.
void EmitLossOfEachPosition(GraphBuilder& graph, const ops::SmoothL1Loss& op,
                            const std::vector<Value*>& inputs, Value* top);

}  // namespace caffe
