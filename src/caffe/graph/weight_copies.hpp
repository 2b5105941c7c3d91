// Weights in another type or layout, as a plan reads them.
#pragma once

#include <vector>

#include "caffe/graph/graph.hpp"

namespace caffe {

// A Cast or Reorder whose result outlives the run: it is made anew only when the weights have
// changed, and an update may write it by itself.
struct WeightCopy {
  Node* node = nullptr;
  Value* weights = nullptr;  // the parameter that owns the memory
  Value* copy = nullptr;     // a kState value
  int source = -1;           // the copy that it is made of; -1: of the weights
  bool is_read = false;      // by other nodes than those that make copies
};

// In the order of the schedule, so that a copy comes after the one that it is made of.
std::vector<WeightCopy> WeightCopies(const Graph& graph);

}  // namespace caffe
