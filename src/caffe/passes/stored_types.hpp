// The first half of assign-precision: the type in which each value is stored, and what must stay
// exact.
#pragma once

#include <set>

#include "caffe/graph/graph.hpp"

namespace caffe::passes {

// Stores each value in the forward_type or backward_type of its layer. Losses and the scores that
// they read, statistics, indices and master weights are never narrower than float. Returns the
// further results of nodes (masks, statistics), which keep their type.
std::set<const Value*> AssignStoredTypes(Graph& graph);

inline DType AtLeastFloat(DType type) {
  return type == DType::kDouble ? type : DType::kFloat;
}

inline bool IsParam(const Value& value) {
  return value.kind == ValueKind::kParam || value.kind == ValueKind::kParamGrad;
}

}  // namespace caffe::passes
