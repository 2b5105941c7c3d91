// Layers whose bottoms are broadcast as in NumPy.
#pragma once

#include <string>
#include <vector>

#include "caffe/graph_builder.hpp"
#include "caffe/ops/broadcast_steps.hpp"

namespace caffe {

// The shape of the result. Throws InvalidArgument if the shapes do not fit.
Shape BroadcastShape(const std::vector<Shape>& shapes);

// How operands of these shapes, which fit, are repeated in `whole`.
ops::BroadcastSteps StepsOf(const std::vector<Shape>& shapes, const Shape& whole);

// Emits part = the sum of `whole` over the axes along which an operand of part's shape is repeated,
// which must be at least one. `name` must be unique within the layer.
void EmitSumOfRepeats(GraphBuilder& graph, const std::string& name, Value* whole, Value* part);

}  // namespace caffe
