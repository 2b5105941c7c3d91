#include "caffe/graph/weight_copies.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

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

std::string Text(const TensorDesc& desc) {
  return StrCat(desc.shape, ' ', Name(desc.dtype), ' ', Name(desc.layout), ' ', desc.scale);
}

// The order in which a kernel reads weights may depend on everything that it was asked for.
std::string OrderOf(const Node& reader, const Graph& graph) {
  std::string order = StrCat(" for ", reader.op.name(), ' ', reader.op.Attributes(), " with ",
                             graph.options.device->num_threads(), " threads");
  for (const Value* input : reader.inputs) {
    if (input != nullptr) order += ", " + Text(input->desc);
  }
  for (const Value* output : reader.outputs) {
    if (output != nullptr) order += ", " + Text(output->desc);
  }
  return order;
}

std::string RecipeOf(const Node& node, const std::vector<WeightCopy>& copies, const Index& index,
                     const std::string& order) {
  std::string recipe = StrCat(node.op.name(), ' ', node.op.Attributes(), order, " of (");
  for (const Value* input : node.inputs) {
    if (input == nullptr) continue;
    const auto source = index.find(input);
    recipe += source != index.end() ? copies[source->second].recipe
                                    : StrCat("from ", input->part_offset, ' ', Text(input->desc));
    recipe += "; ";
  }
  recipe += ") to";
  for (const Value* output : node.outputs)
    recipe += StrCat(' ', output->name, ' ', Text(output->desc));
  return recipe;
}

std::map<const Value*, const Node*> FirstReaders(const Graph& graph) {
  std::map<const Value*, const Node*> readers;
  for (const Node* node : graph.ScheduledNodes()) {
    for (const Value* input : node->inputs) readers.emplace(input, node);
  }
  return readers;
}

void AddUnique(Value* value, std::vector<Value*>* values) {
  if (std::ranges::find(*values, value) == values->end()) values->push_back(value);
}

// Copies that other steps read; these may come before the copy's maker in the schedule.
void MarkRead(const Graph& graph, const Index& index, std::vector<WeightCopy>* copies) {
  std::set<const Node*> makers;
  for (const WeightCopy& copy : *copies) makers.insert(copy.node);
  for (const Node* node : graph.ScheduledNodes()) {
    if (makers.contains(node)) continue;
    for (const Value* input : node->inputs) {
      const auto found = index.find(input);
      if (found != index.end()) (*copies)[found->second].is_read = true;
    }
  }
}

}  // namespace

std::vector<WeightCopy> WeightCopies(const Graph& graph) {
  std::vector<WeightCopy> copies;
  Index index;
  const std::map<const Value*, const Node*> readers = FirstReaders(graph);
  for (Node* node : graph.ScheduledNodes()) {
    if (!MakesCopy(*node, index)) continue;
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
    const auto* pack = node->op.As<ops::PackWeights>();
    const std::string order = pack == nullptr ? ""
                              : !pack->order.empty()
                                  ? pack->order
                                  : OrderOf(*readers.at(node->outputs[0]), graph);
    copy.recipe = RecipeOf(*node, copies, index, order);
    for (Value* output : node->outputs) {
      copy.results.push_back(output);
      index[output] = static_cast<int>(copies.size());
    }
    copies.push_back(std::move(copy));
  }
  MarkRead(graph, index, &copies);
  return copies;
}

std::set<const Value*> WeightsOnlyCopied(const Graph& graph) {
  if (graph.options.is_training_phase || graph.options.for_any_processor) return {};
  std::set<const Value*> only_copied;
  std::set<const Node*> makers;
  for (const WeightCopy& copy : WeightCopies(graph)) {
    makers.insert(copy.node);
    only_copied.insert(copy.weights.begin(), copy.weights.end());
    if (!copy.is_read) only_copied.insert(copy.results.begin(), copy.results.end());
  }
  for (const Node* node : graph.ScheduledNodes()) {
    if (makers.count(node) > 0) continue;
    for (Value* value : node->inputs) {
      if (value != nullptr) only_copied.erase(value->root());
    }
    for (Value* value : node->outputs) {
      if (value != nullptr) only_copied.erase(value->root());
    }
  }
  return only_copied;
}

}  // namespace caffe
