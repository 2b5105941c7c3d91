#include "caffe/passes/fusion.hpp"

#include <algorithm>

#include "caffe/ops/activations.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::passes {
namespace {

bool IsPlainSumOfTwo(const Node& node) {
  const auto* sum = node.op.As<ops::EltwiseSum>();
  return sum != nullptr && node.inputs.size() == 2 &&
         std::ranges::all_of(sum->coefficients, [](float c) { return c == 1; });
}

// Operands that the op itself may have; those of the epilogue come after them.
size_t NumOwnInputs(const Node& node) {
  if (node.op.As<ops::BatchNormInference>() != nullptr) return ops::BatchNormInference::kBeta + 1;
  if (node.op.As<ops::ConvGradData>() != nullptr) return ops::ConvGradData::kW + 1;
  return 3;  // x, gamma, beta; x, w, bias; a, b, bias
}

}  // namespace

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
  for (Node* node : nodes_) {
    steps_.emplace(node, static_cast<int64_t>(steps_.size()));
    if (node->is_recomputation) continue;
    // It would read the value of forward if that was kept.
    for (const Value* input : node->inputs) {
      if (input != nullptr && input->recomputed_from != nullptr)
        readers_[input->recomputed_from].push_back(node);
    }
  }
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

bool Fusion::AbsorbSum(Node& sum) {
  if (!IsPlainSumOfTwo(sum)) return false;
  // The later one of two: what it adds is there when it runs.
  const int last = StepOf(sum.inputs[1]) > StepOf(sum.inputs[0]) ? 1 : 0;
  const Operand computed = sum.inputs[last], residual = sum.inputs[1 - last];
  Node* writer = WriterOf(computed);
  if (writer == nullptr || writer->op.epilogue() == nullptr || writer->outputs[0] != computed ||
      writer->op.As<ops::EltwiseSum>() != nullptr || computed->is_kept ||
      ReadersOf(computed).size() != 1 || !HaveOneType(*writer, computed, sum) ||
      residual.dtype != computed.dtype || residual->desc.dtype != residual.dtype ||
      residual->desc.shape != computed->desc.shape) {
    return false;
  }
  const size_t operand = std::max(writer->inputs.size(), NumOwnInputs(*writer));
  ops::Epilogue epilogue = *writer->op.epilogue();
  epilogue.push_back({ops::Pointwise::Kind::kAdd, 0, 0, static_cast<int>(operand)});
  const ops::Epilogue& of_sum = *sum.op.epilogue();
  epilogue.insert(epilogue.end(), of_sum.begin(), of_sum.end());
  if (!IsServed(*writer, epilogue)) return false;
  SetInput(*writer, operand, residual);
  writer->op = writer->op.WithEpilogue(std::move(epilogue));
  Absorb(*writer, sum);
  return true;
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
