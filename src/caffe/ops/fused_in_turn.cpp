#include "caffe/ops/fused_in_turn.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace caffe::ops {
namespace {

using Place = Fused::Place;
using Kind = Fused::Place::Kind;

constexpr Signature kNumbers = {DType::kInt8, DType::kFloat};

// One operand of a member, and where a run finds its memory.
struct BoundOperand {
  Place place;
  OperandDesc desc;

  void* DataIn(const KernelContext& ctx, const std::vector<size_t>& inner_offsets) const {
    const auto i = static_cast<size_t>(place.index);
    switch (place.kind) {
      case Kind::kInput:
        return ctx.inputs[i].data;
      case Kind::kOutput:
        return ctx.outputs[i].data;
      case Kind::kInner:
        return static_cast<char*>(ctx.workspace) + inner_offsets[i];
      case Kind::kAbsent:
        break;
    }
    return nullptr;
  }
};

// The shapes are fixed, so a run only sets addresses and allocates nothing.
struct BoundMember {
  Kernel kernel;
  std::vector<BoundOperand> inputs, outputs;
  std::vector<TensorView> input_views, output_views;

  void Run(const KernelContext& whole, const std::vector<size_t>& inner_offsets,
           size_t workspace_offset) {
    KernelContext ctx = whole;
    for (size_t i = 0; i < inputs.size(); ++i)
      input_views[i].data = inputs[i].DataIn(whole, inner_offsets);
    ctx.accumulated = {};
    for (size_t i = 0; i < outputs.size(); ++i) {
      output_views[i].data = outputs[i].DataIn(whole, inner_offsets);
      const Place& place = outputs[i].place;
      if (place.kind == Kind::kOutput && whole.accumulates(place.index)) ctx.accumulated.insert(i);
    }
    // A recomputation updates nothing again.
    if (std::ranges::all_of(output_views, [](const TensorView& y) { return y.data == nullptr; }))
      return;
    ctx.inputs = input_views;
    ctx.outputs = output_views;
    ctx.workspace = static_cast<char*>(whole.workspace) + workspace_offset;
    kernel.run(ctx);
  }
};

class Binder {
 public:
  Binder(const Fused& op, const KernelRequest& request) : request_(request) {
    const std::vector<TensorDesc> inputs(request.inputs.begin(), request.inputs.end());
    const std::vector<TensorDesc> outputs(request.outputs.begin(), request.outputs.end());
    inner_ = op.InnerDescs(inputs, outputs);
    readers_.resize(request.inputs.size());
    for (const Fused::Member& member : op.members) {
      for (const Place& place : member.inputs) {
        if (place.kind == Kind::kInput && !IsMissing(place)) ++readers_[place.index];
      }
    }
  }

  const std::vector<TensorDesc>& inner() const { return inner_; }

  std::vector<BoundOperand> Bind(const std::vector<Place>& places) const {
    std::vector<BoundOperand> operands;
    for (const Place& place : places) {
      const Place known = IsMissing(place) ? Place() : place;
      operands.push_back({known, Describe(known)});
    }
    return operands;
  }

 private:
  // True for trailing operands that the node does not have.
  bool IsMissing(const Place& place) const {
    const auto i = static_cast<size_t>(place.index);
    return (place.kind == Kind::kInput && i >= request_.inputs.size()) ||
           (place.kind == Kind::kOutput && i >= request_.outputs.size());
  }

  OperandDesc Describe(const Place& place) const {
    const auto i = static_cast<size_t>(place.index);
    OperandDesc desc;
    desc.present = place.kind != Kind::kAbsent;
    if (place.kind == Kind::kInner) static_cast<TensorDesc&>(desc) = inner_[i];
    if (place.kind == Kind::kInput) desc = request_.inputs[i];
    if (place.kind == Kind::kOutput) desc = request_.outputs[i];
    // A step of the plan may convert what one member reads.
    desc.may_be_packed = place.kind == Kind::kInput && desc.may_be_packed && readers_[i] == 1;
    desc.is_last_read = false;
    return desc;
  }

  const KernelRequest& request_;
  std::vector<TensorDesc> inner_;
  std::vector<int> readers_;  // members that read each of the node's inputs
};

// The workspace begins with the inner tensors, each where every library can begin to read.
constexpr size_t kInnerAlignment = 256;

// Hands a member's packed weights to the plan, as an operand of the node; a second member with such
// weights packs them itself, in each run.
void TakePackedWeights(const Fused::Member& member, Kernel* kernel, Kernel* whole) {
  if (!kernel->packed_weights) return;
  if (whole->packed_weights) {
    *kernel = PackingItself(std::move(*kernel));
    return;
  }
  whole->packed_weights = std::move(kernel->packed_weights);
  kernel->packed_weights.reset();
  const int operand = whole->packed_weights->operand;
  whole->packed_weights->operand = member.inputs[static_cast<size_t>(operand)].index;
}

Signature SignatureOf(const std::vector<OperandDesc>& operands) {
  const DType type = operands[0].dtype;
  if (Is8Bit(type)) return kNumbers;
  return {type, type == DType::kDouble ? type : DType::kFloat};
}

KernelOrRefusal MakeMember(const Op& op, const std::vector<OperandDesc>& inputs,
                           const std::vector<OperandDesc>& outputs, const KernelRequest& request) {
  const Signature signature = SignatureOf(inputs.empty() ? outputs : inputs);
  std::string refusals;
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(request.device.kind(), op.type())) {
    const std::optional<Layout> layout = candidate.traits.layout;
    if (!candidate.Serves(op, signature) || (layout && !inputs.empty() && *layout != inputs[0].layout)) continue;
    KernelOrRefusal answer =
        candidate.factory({op, inputs, outputs, request.device, request.settings});
    if (std::holds_alternative<Kernel>(answer)) return answer;
    refusals += StrCat("; ", candidate.name, ": ", std::get<Refusal>(answer).reason);
  }
  return Refusal{StrCat("no kernel for the member ", op.name(), refusals)};
}

std::vector<OperandDesc> DescsOf(const std::vector<BoundOperand>& operands) {
  std::vector<OperandDesc> descs;
  for (const BoundOperand& operand : operands) descs.push_back(operand.desc);
  return descs;
}

std::vector<TensorView> ViewsOf(const std::vector<BoundOperand>& operands) {
  std::vector<TensorView> views;
  for (const BoundOperand& operand : operands)
    static_cast<TensorDesc&>(views.emplace_back()) = operand.desc;
  return views;
}

}  // namespace

KernelOrRefusal MakeInTurn(const Fused& op, const KernelRequest& request) {
  const Binder binder(op, request);
  auto members = std::make_shared<std::vector<BoundMember>>();
  size_t most_workspace = 0;
  Kernel whole;
  for (const Fused::Member& member : op.members) {
    BoundMember& bound = members->emplace_back();
    bound.inputs = binder.Bind(member.inputs);
    bound.outputs = binder.Bind(member.outputs);
    KernelOrRefusal answer =
        MakeMember(member.op, DescsOf(bound.inputs), DescsOf(bound.outputs), request);
    if (std::holds_alternative<Refusal>(answer)) return answer;
    bound.kernel = std::move(std::get<Kernel>(answer));
    TakePackedWeights(member, &bound.kernel, &whole);
    if (whole.algorithms.empty()) whole.algorithms = bound.kernel.algorithms;
    whole.needs_own_output |= bound.kernel.needs_own_output;
    bound.input_views = ViewsOf(bound.inputs);
    bound.output_views = ViewsOf(bound.outputs);
    most_workspace = std::max(most_workspace, bound.kernel.workspace_bytes);
  }
  std::vector<size_t> offsets;
  size_t inner_bytes = 0;
  for (const TensorDesc& inner : binder.inner()) {
    offsets.push_back(inner_bytes);
    inner_bytes += (inner.bytes() + kInnerAlignment - 1) / kInnerAlignment * kInnerAlignment;
  }
  whole.run = [members, offsets, inner_bytes](const KernelContext& ctx) {
    for (BoundMember& member : *members) member.Run(ctx, offsets, inner_bytes);
  };
  whole.workspace_bytes = inner_bytes + most_workspace;
  return whole;
}

KernelTraits InTurnTraits() {
  KernelTraits traits{.signatures = EverySignature()};
  traits.signatures.push_back(kNumbers);
  return traits;
}

}  // namespace caffe::ops
