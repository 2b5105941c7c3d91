#include "caffe/passes/fusion.hpp"

#include <algorithm>
#include <utility>

namespace caffe::passes {
namespace {

using ops::Fused;

std::vector<FusionRule>& MutableRules() {
  static std::vector<FusionRule> rules;
  return rules;
}

std::vector<OperandDesc> Describe(const std::vector<Operand>& operands) {
  std::vector<OperandDesc> descs;
  for (const Operand& operand : operands) {
    OperandDesc& desc = descs.emplace_back();
    desc.may_be_packed = true;
    desc.present = operand.value != nullptr;
    if (desc.present) static_cast<TensorDesc&>(desc) = operand->desc;
  }
  return descs;
}

}  // namespace

FusionRow::FusionRow(const FusionRule& rule) {
  std::vector<FusionRule>& rules = MutableRules();
  rules.insert(std::ranges::upper_bound(rules, rule.order, {}, &FusionRule::order), rule);
}

const std::vector<FusionRule>& FusionRules() {
  return MutableRules();
}

// Two nodes as one.
struct Fusion::Region {
  Fused op;
  std::vector<Operand> inputs;
  std::vector<Result> outputs;

  // Appends a node; its own members if it is a region already.
  void Add(const Node& node, const Value* inner) {
    const auto* region = node.op.As<Fused>();
    const Fused single = region == nullptr ? Single(node) : *region;
    const int before = static_cast<int>(op.inner.size());
    op.inner.insert(op.inner.end(), single.inner.begin(), single.inner.end());
    for (const Fused::Member& member : single.members) {
      Fused::Member& added = op.members.emplace_back(Fused::Member{member.op, {}, {}});
      for (const Fused::Place& place : member.inputs)
        added.inputs.push_back(PlaceOf(node, place, before, inner));
      for (const Fused::Place& place : member.outputs)
        added.outputs.push_back(PlaceOf(node, place, before, inner));
    }
  }

 private:
  static Fused Single(const Node& node) {
    Fused::Member member{node.op, {}, {}};
    for (size_t i = 0; i < node.inputs.size(); ++i)
      member.inputs.push_back(Fused::Input(static_cast<int>(i)));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      member.outputs.push_back(Fused::Output(static_cast<int>(i)));
    return {{std::move(member)}};
  }

  Fused::Place PlaceOf(const Node& node, const Fused::Place& place, int inner_before,
                       const Value* inner) {
    using Kind = Fused::Place::Kind;
    const auto i = static_cast<size_t>(place.index);
    if (place.kind == Kind::kAbsent) return place;
    if (place.kind == Kind::kInner) return Fused::Inner(place.index + inner_before);
    if (place.kind == Kind::kInput) return PlaceOfInput(node.inputs[i], inner);
    return PlaceOfOutput(node.outputs[i], inner);
  }

  Fused::Place PlaceOfInput(const Operand& input, const Value* inner) {
    if (input.value != nullptr && input.value == inner) return PlaceOfInner(input);
    const auto output = std::ranges::find(outputs, input.value, &Result::value);
    if (input.value != nullptr && output != outputs.end())
      return Fused::Output(static_cast<int>(output - outputs.begin()));
    const auto known = std::ranges::find_if(inputs, [&](const Operand& one) {
      return input.value != nullptr && one.value == input.value && one.dtype == input.dtype;
    });
    const auto index = static_cast<int>(known - inputs.begin());
    if (known == inputs.end()) inputs.push_back(input);  // absent ones, too: they keep indexes
    return input.value == nullptr ? Fused::Place() : Fused::Input(index);
  }

  Fused::Place PlaceOfOutput(const Result& output, const Value* inner) {
    if (output.value != nullptr && output.value == inner) return PlaceOfInner(output);
    const auto known = std::ranges::find(outputs, output.value, &Result::value);
    const auto index = static_cast<int>(known - outputs.begin());
    if (output.value == nullptr || known == outputs.end()) outputs.push_back(output);
    return output.value == nullptr ? Fused::Place() : Fused::Output(index);
  }

  Fused::Place PlaceOfInner(const Operand& operand) {
    if (inner_index_ < 0) {
      const TensorDesc& desc = operand->desc;
      inner_index_ = static_cast<int>(op.inner.size());
      op.inner.push_back({desc.shape, {}, desc.scale});
      if (Is8Bit(desc.dtype)) op.inner.back().dtype = desc.dtype;
    }
    return Fused::Inner(inner_index_);
  }

  int inner_index_ = -1;
};

Fusion::Fusion(Graph& graph)
    : graph_(graph),
      nodes_(graph.ScheduledNodes()),
      readers_(Readers(graph)),
      writers_(Writers(graph)) {
  for (Node* node : nodes_) {
    steps_.emplace(node, static_cast<int64_t>(steps_.size()));
    if (node->is_recomputation) continue;
    // Without recomputation it would read the value of forward.
    for (const Value* input : node->inputs) {
      if (input != nullptr && input->recomputed_from != nullptr)
        readers_[input->recomputed_from].push_back(node);
    }
  }
}

FusionReport& Fusion::Begin(std::string_view row) {
  report_ = &graph_.fusion_reports.emplace_back();
  report_->row = row;
  return *report_;
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

bool Fusion::Serves(const Node& node, const ops::Epilogue& epilogue) {
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(graph_.options.device->kind(), node.op.type())) {
    if (!candidate.Serves(node.signature)) continue;
    if (candidate.traits.fuses != nullptr && candidate.traits.fuses(epilogue)) continue;
    Refuse(node,
           StrCat(candidate.name, " does not apply this epilogue", ops::EpilogueText(epilogue)));
    return false;
  }
  return true;
}

std::optional<Fusion::Region> Fusion::JoinIfServed(const Node& first, const Node& second,
                                                   const Value* inner) {
  Region region;
  if (first.outputs[0].value == inner && first.outputs.size() > 1 && second.outputs[0] != nullptr)
    region.outputs.push_back(second.outputs[0]);  // so the others keep their indexes
  region.Add(first, inner);
  region.Add(second, inner);
  const std::optional<std::string> why_not = WhyNot(region, second.signature);
  if (!why_not) return region;
  if (!why_not->empty()) Refuse(second.layers.empty() ? first : second, *why_not);
  return std::nullopt;
}

bool Fusion::CanMerge(const Node& first, const Node& second, const Value* inner) {
  return JoinIfServed(first, second, inner).has_value();
}

bool Fusion::Merge(const Node& first, const Node& second, const Value* inner, Node& into) {
  std::optional<Region> region = JoinIfServed(first, second, inner);
  if (!region) return false;
  AddLayers(into, first);
  AddLayers(into, second);
  into.signature = second.signature;
  into.op = std::move(region->op);
  into.inputs = std::move(region->inputs);
  into.outputs = std::move(region->outputs);
  for (const Result& output : into.outputs) {
    if (output != nullptr && output->kind == ValueKind::kActivation) writers_[output] = &into;
  }
  return true;
}

void Fusion::Absorb(Node& into, Node& from) {
  static_cast<Operand&>(into.outputs[0]) = from.outputs[0];
  writers_[into.outputs[0]] = &into;
  AddLayers(into, from);
  Erase(from);
}

bool Fusion::IsErased(const Node* node) const {
  return std::ranges::find(erased_, node) != erased_.end();
}

void Fusion::Finish() {
  graph_.Erase(erased_);
  erased_.clear();
}

std::optional<std::string> Fusion::WhyNot(const Region& region, const Signature& signature) const {
  const Op op(region.op);
  const Device& device = *graph_.options.device;
  const std::vector<OperandDesc> inputs = Describe(region.inputs);
  std::string reasons;
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(device.kind(), op.type())) {
    if (candidate.rank == KernelRank::kReference || !candidate.IsFor(op)) continue;
    std::string reason = StrCat("does not take ", Name(signature.data));
    if (candidate.Serves(signature)) {
      const auto why_not = candidate.traits.why_not;
      if (why_not == nullptr) return std::nullopt;
      reason = why_not(op, inputs, device);
      if (reason.empty()) return std::nullopt;
    }
    reasons += StrCat(reasons.empty() ? "" : "; ", candidate.name, ": ", reason);
  }
  return reasons;
}

void Fusion::Refuse(const Node& node, const std::string& reason) {
  const std::string layer = node.layers.empty() ? "" : graph_.LayerName(node.layers.front());
  report_->refusals.push_back(StrCat(layer, ": ", reason));
}

bool HaveOneType(const Node& from, const Operand& read, const Node& to) {
  const DType type = read->desc.dtype;
  return from.outputs[0].dtype == type && read.dtype == type && to.outputs[0] != nullptr &&
         to.outputs[0].dtype == type && to.outputs[0]->desc.dtype == type;
}

bool IsLike(const Operand& operand, const Operand& other) {
  return operand.dtype == other.dtype && operand->desc.dtype == other.dtype &&
         operand->desc.shape == other->desc.shape;
}

void AddLayers(Node& into, const Node& from) {
  for (const int layer : from.layers) {
    if (std::ranges::find(into.layers, layer) == into.layers.end()) into.layers.push_back(layer);
  }
}

void SetInput(Node& node, size_t index, const Operand& operand) {
  while (node.inputs.size() <= index) {
    node.inputs.emplace_back();
    node.inputs.back().dtype = node.signature.data;
  }
  node.inputs[index] = operand;
}

Operand InputOf(const Node& node, size_t index) {
  return index < node.inputs.size() ? node.inputs[index] : Operand();
}

}  // namespace caffe::passes
