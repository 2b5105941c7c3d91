// Copies of weights in the form that a plan reads.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"

namespace caffe {

// A Cast, Reorder, FoldChannels or PackWeights node with results that outlive the run. They are
// recomputed only if the weights have changed; an update may write the result of a conversion
// itself.
struct WeightCopy {
  Node* node = nullptr;
  std::vector<Value*> weights;  // parameters it is computed from, as owners of their memory
  std::vector<Value*> results;  // kState values
  std::vector<int> sources;     // indexes of the copies that it is computed from
  bool is_read = false;         // by nodes other than those that make copies
  // How it is computed: equal texts give equal results from equal weights, in all plans of a net.
  std::string recipe;
};

// In schedule order, so that a copy comes after its sources.
std::vector<WeightCopy> WeightCopies(const Graph& graph);

// Weights, and copies of weights, from which a testing net only makes copies, as owners of their
// memory: they need no memory once these exist.
std::set<const Value*> WeightsOnlyCopied(const Graph& graph);

}  // namespace caffe
