#include "caffe/passes/fusion.hpp"

#include <algorithm>

#include "caffe/ops/activations.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::passes {

std::optional<ops::Pointwise> EntryOf(const Node& node) {
  if (const auto* relu = node.op.As<ops::Relu>(); relu != nullptr && relu->negative_slope >= 0)
    return ops::Pointwise{ops::Pointwise::Kind::kRelu, relu->negative_slope};
  if (const auto* clip = node.op.As<ops::Clip>())
    return ops::Pointwise{ops::Pointwise::Kind::kClip, clip->least, clip->most};
  if (const auto* swish = node.op.As<ops::Swish>())
    return ops::Pointwise{ops::Pointwise::Kind::kSwish, swish->beta};
  return std::nullopt;
}

Fusion::Fusion(Graph& graph)
    : graph_(graph),
      nodes_(graph.ScheduledNodes()),
      readers_(Readers(graph)),
      writers_(Writers(graph)) {
  for (const Node* node : nodes_) steps_.emplace(node, static_cast<int64_t>(steps_.size()));
}

Node* Fusion::WriterOf(const Value* value) const {
  const auto found = writers_.find(value);
  return found == writers_.end() ? nullptr : found->second;
}

const std::vector<Node*>& Fusion::ReadersOf(const Value* value) const {
  static const std::vector<Node*> none;
  const auto found = readers_.find(value);
  return found == readers_.end() ? none : found->second;
}

Node* Fusion::OnlyReaderOf(const Value* value) const {
  const std::vector<Node*>& readers = ReadersOf(value);
  return readers.size() == 1 && !value->is_kept ? readers[0] : nullptr;
}

int64_t Fusion::StepOf(const Value* value) const {
  const Node* writer = WriterOf(value);
  return writer == nullptr ? -1 : StepOf(*writer);
}

bool Fusion::IsErased(const Node* node) const {
  return std::ranges::find(erased_, node) != erased_.end();
}

bool Fusion::IsServed(const Node& node, const ops::Epilogue& epilogue) const {
  const auto& candidates =
      KernelRegistry::Get().Candidates(graph_.options.device->kind(), node.op.type());
  return std::ranges::all_of(candidates, [&](const KernelCandidate& candidate) {
    return !candidate.Serves(node.signature) ||
           (candidate.traits.fuses != nullptr && candidate.traits.fuses(epilogue));
  });
}

void Fusion::Absorb(Node& into, Node& from) {
  static_cast<Operand&>(into.outputs[0]) = from.outputs[0];
  writers_[into.outputs[0]] = &into;
  AddLayers(into, from);
  Erase(from);
}

void Fusion::Finish() {
  graph_.Erase(erased_);
  erased_.clear();
}

bool Fusion::HaveOneType(const Node& from, const Operand& read, const Node& to) {
  const DType type = read->desc.dtype;
  return from.outputs[0].dtype == type && read.dtype == type && to.outputs[0] != nullptr &&
         to.outputs[0].dtype == type && to.outputs[0]->desc.dtype == type;
}

void Fusion::AddLayers(Node& into, const Node& from) {
  for (const int layer : from.layers) {
    if (std::ranges::find(into.layers, layer) == into.layers.end()) into.layers.push_back(layer);
  }
}

void Fusion::SetInput(Node& node, size_t index, const Operand& operand) {
  while (node.inputs.size() <= index) {
    node.inputs.emplace_back();
    node.inputs.back().dtype = node.signature.data;
  }
  node.inputs[index] = operand;
}

}  // namespace caffe::passes
