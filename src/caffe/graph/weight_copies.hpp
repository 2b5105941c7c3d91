// Weights in another form, as a plan reads them.
#pragma once

#include <vector>

#include "caffe/graph/graph.hpp"

namespace caffe {

// A Cast, a Reorder, a FoldChannels or a PackWeights whose results outlive the run: they are made
// anew only when the weights have changed, and an update may write those of a conversion by itself.
struct WeightCopy {
  Node* node = nullptr;
  std::vector<Value*> weights;  // the parameters that it is made of, those that own the memory
  std::vector<Value*> results;  // kState values
  std::vector<int> sources;     // the copies that it is made of
  bool is_read = false;         // by other nodes than those that make copies
};

// In the order of the schedule, so that a copy comes after those that it is made of.
std::vector<WeightCopy> WeightCopies(const Graph& graph);

}  // namespace caffe
