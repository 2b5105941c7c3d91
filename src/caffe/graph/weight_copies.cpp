#include "caffe/graph/weight_copies.hpp"

#include <algorithm>
#include <map>

#include "caffe/ops/convert.hpp"
#include "caffe/ops/fold.hpp"
#include "caffe/ops/pack.hpp"

namespace caffe {
namespace {

using Index = std::map<const Value*, int>;

bool MakesCopy(const Node& node, const Index& copies) {
  const bool converts =
      node.op.As<ops::Cast>() != nullptr || node.op.As<ops::Reorder>() != nullptr ||
      node.op.As<ops::FoldChannels>() != nullptr || node.op.As<ops::PackWeights>() != nullptr;
  return converts &&
         std::ranges::all_of(node.outputs,
                             [](const Value* value) { return value->kind == ValueKind::kState; }) &&
         std::ranges::all_of(node.inputs, [&](const Value* value) {
           return value == nullptr || value->kind == ValueKind::kParam || copies.count(value) > 0;
         });
}

void AddUnique(Value* value, std::vector<Value*>* values) {
  if (std::ranges::find(*values, value) == values->end()) values->push_back(value);
}

}  // namespace

std::vector<WeightCopy> WeightCopies(const Graph& graph) {
  std::vector<WeightCopy> copies;
  Index index;
  for (Node* node : graph.ScheduledNodes()) {
    if (!MakesCopy(*node, index)) {
      for (const Value* input : node->inputs) {
        const auto found = index.find(input);
        if (found != index.end()) copies[found->second].is_read = true;
      }
      continue;
    }
    WeightCopy copy{node};
    for (Value* input : node->inputs) {
      if (input == nullptr) continue;
      const auto source = index.find(input);
      if (source == index.end()) {
        AddUnique(input->root(), &copy.weights);
        continue;
      }
      copy.sources.push_back(source->second);
      for (Value* weights : copies[source->second].weights) AddUnique(weights, &copy.weights);
    }
    for (Value* output : node->outputs) {
      copy.results.push_back(output);
      index[output] = static_cast<int>(copies.size());
    }
    copies.push_back(std::move(copy));
  }
  return copies;
}

}  // namespace caffe
