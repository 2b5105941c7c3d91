#include "caffe/passes/stored_types.hpp"

#include <algorithm>

#include "caffe/ops/convert.hpp"

namespace caffe::passes {
namespace {

// True if the op's arithmetic is never narrower than float.
bool ComputesWide(const Op& op) {
  return op.numeric_rule() == NumericRule::kFloat || op.numeric_rule() == NumericRule::kAsStored;
}

// Further results of a node (masks, statistics) keep their type, and are never narrower than
// float if they are tops.
std::set<const Value*> SideResults(Graph& graph) {
  std::set<const Value*> results;
  for (LayerCall& call : graph.calls) {
    for (const auto& [name, value] : call.saved) results.insert(value);
  }
  for (Node* node : graph.ScheduledNodes()) {
    if (node->direction != Direction::kForward) continue;
    if (!node->outputs.empty()) results.erase(node->outputs[0]);
    if (node->op.As<ops::HostCall>() == nullptr) {
      for (size_t i = 1; i < node->outputs.size(); ++i)
        if (node->outputs[i] != nullptr) node->outputs[i]->at_least_float = true;
    }
    if (!ComputesWide(node->op)) continue;
    for (Value* output : node->outputs) {
      if (output != nullptr) output->at_least_float = true;
      results.erase(output);
    }
  }
  return results;
}

// True if results are as exact as the inputs: elements are moved, chosen or computed one by one.
bool IsAsExactAsInputs(const Op& op) {
  return op.is_view() || (op.numeric_rule() == NumericRule::kStorage && !op.makes_float());
}

// Results of products of rounded factors, and what is made of nothing else: wider storage would
// not make them more exact.
std::set<const Value*> RoundedResults(const std::vector<Node*>& nodes) {
  std::set<const Value*> rounded;
  for (const Node* node : nodes) {
    if (node->direction != Direction::kForward || ComputesWide(node->op)) continue;
    std::vector<const Value*> data;
    for (const Value* input : node->inputs) {
      if (input != nullptr && !IsParam(*input)) data.push_back(input);
    }
    const auto is_rounded = [&](const Value* input) { return rounded.contains(input); };
    if (!IsAsExactAsInputs(node->op) || (!data.empty() && std::ranges::all_of(data, is_rounded)))
      rounded.insert(node->outputs.begin(), node->outputs.end());
  }
  return rounded;
}

// Class indexes above 256 are not exact in bfloat16, so labels stay float from their source on,
// through whatever lies between.
void KeepLabelsExact(Graph& graph) {
  std::vector<Node*> nodes = graph.ScheduledNodes();
  const std::set<const Value*> rounded = RoundedResults(nodes);
  std::set<const Value*> exact;
  const auto keep = [&](Value* value) {
    value->at_least_float = true;
    exact.insert(value);
  };
  std::reverse(nodes.begin(), nodes.end());
  for (Node* node : nodes) {
    if (node->direction != Direction::kForward) continue;
    const Op& op = node->op;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (op.exact_inputs().contains(i) && node->inputs[i] != nullptr) keep(node->inputs[i]);
    }
    const Value* result = node->outputs.empty() ? nullptr : node->outputs[0];
    if (result == nullptr) continue;
    const bool moves =
        op.is_view() || op.As<ops::SliceOf>() != nullptr || op.As<ops::Concat>() != nullptr;
    const bool is_wanted = IsAsExactAsInputs(op) && exact.contains(result);
    for (Value* input : node->inputs) {
      if (input == nullptr) continue;
      if (moves && result->at_least_float) input->at_least_float = true;
      if (is_wanted && !IsParam(*input) && !rounded.contains(input)) keep(input);
    }
  }
}

// A matrix product's sums are already float. If only ops that compute in float read them (a loss,
// an accuracy), rounding in between would save nothing. Scores that are rounded to bfloat16 tie,
// which counts against the label: 0.2 points of CIFAR-10 quick. A layer's own forward_type takes
// precedence. The gradient of scores has the layer's backward_type.
std::set<const Value*> KeepScoresWide(Graph& graph) {
  std::set<const Value*> widened;
  const auto readers = Readers(graph);
  const auto reads_narrow = [](const Node* reader) {
    return reader->direction == Direction::kForward && !ComputesWide(reader->op);
  };
  for (const Node* node : graph.ScheduledNodes()) {
    if (node->direction != Direction::kForward || !node->op.makes_float() ||
        node->op.numeric_rule() != NumericRule::kMath) {
      continue;
    }
    Value* scores = node->outputs[0];
    if (graph.calls[node->layers.front()].types.has_own_forward || scores->at_least_float) continue;
    const auto found = readers.find(scores);
    if (found != readers.end() && std::ranges::any_of(found->second, reads_narrow)) continue;
    scores->at_least_float = true;
    widened.insert(scores);
  }
  return widened;
}

// Layers that share a parameter share its memory, so it has the widest type that they request.
void StoreParameters(Graph& graph) {
  for (Value& value : graph.values()) {
    if (IsParam(value)) value.root()->desc.dtype = DType::kFloat;
  }
  for (Value& value : graph.values()) {
    if (!IsParam(value)) continue;
    if (graph.calls[value.layer].types.parameters() == DType::kDouble)
      value.root()->desc.dtype = DType::kDouble;
  }
  for (Value& value : graph.values()) {
    if (IsParam(value)) value.desc.dtype = value.root()->desc.dtype;
  }
}

DType StorageType(const Graph& graph, const Value& value, const std::set<const Value*>& scores) {
  if (value.desc.dtype == DType::kUInt8) return DType::kUInt8;
  const LayerTypes& types = graph.calls[value.layer].types;
  const bool is_gradient = value.gradient_of != nullptr;
  const DType type = is_gradient ? types.backward : types.forward;
  const bool wide = is_gradient ? value.at_least_float && !scores.contains(value.gradient_of)
                                : value.at_least_float;
  return wide ? AtLeastFloat(type) : type;
}

// Gives two values that share memory the wider of their types.
void ShareType(Value& one, Value& other) {
  if (one.desc.dtype == other.desc.dtype) return;
  const bool is_double = one.desc.dtype == DType::kDouble || other.desc.dtype == DType::kDouble;
  one.desc.dtype = other.desc.dtype = is_double ? DType::kDouble : DType::kFloat;
}

}  // namespace

std::set<const Value*> AssignStoredTypes(Graph& graph) {
  std::set<const Value*> side_results = SideResults(graph);
  KeepLabelsExact(graph);
  const std::set<const Value*> scores = KeepScoresWide(graph);
  StoreParameters(graph);
  for (Value& value : graph.values()) {
    if (value.layer >= 0 && !IsParam(value)) value.desc.dtype = StorageType(graph, value, scores);
  }
  // Memory that a user provides later holds the blob's last version, or its gradient.
  for (const auto& [name, value] : graph.external_data) ShareType(*value, *graph.blobs.at(name));
  for (const auto& [name, value] : graph.external_diffs) {
    const auto gradient = graph.blob_grads.find(name);
    if (gradient != graph.blob_grads.end()) ShareType(*value, *gradient->second);
  }
  return side_results;
}

}  // namespace caffe::passes
