#include "caffe/graph/weight_copies.hpp"

#include "caffe/ops/convert.hpp"

namespace caffe {

std::vector<WeightCopy> WeightCopies(const Graph& graph) {
  std::vector<WeightCopy> copies;
  std::map<const Value*, size_t> index;
  for (Node* node : graph.ScheduledNodes()) {
    const bool converts =
        node->op.As<ops::Cast>() != nullptr || node->op.As<ops::Reorder>() != nullptr;
    Value* const to = converts ? node->outputs[0] : nullptr;
    Value* const from = to != nullptr ? node->inputs[0] : nullptr;
    const auto source = index.find(from);
    const bool is_copy = to != nullptr && to->kind == ValueKind::kState &&
                         (source != index.end() || from->kind == ValueKind::kParam);
    if (!is_copy) {
      for (const Value* input : node->inputs) {
        const auto found = index.find(input);
        if (found != index.end()) copies[found->second].is_read = true;
      }
      continue;
    }
    WeightCopy copy{node, from->root(), to};
    if (source != index.end())
      copy.source = static_cast<int>(source->second), copy.weights = copies[copy.source].weights;
    index[to] = copies.size();
    copies.push_back(copy);
  }
  return copies;
}

}  // namespace caffe
