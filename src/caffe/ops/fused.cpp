#include "caffe/ops/fused.hpp"

#include <algorithm>
#include <array>

#include "caffe/error.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/read_again.hpp"

namespace caffe::ops {
namespace {

using Place = Fused::Place;
using Kind = Fused::Place::Kind;

// Picks a member's operands from what is known of the node's and the inner ones; `none` for absent
// operands.
template <typename T>
std::vector<T> Select(const std::vector<Place>& places, std::span<const T> inputs,
                      std::span<const T> outputs, std::span<const T> inner, const T& none) {
  std::vector<T> selected;
  for (const Place& place : places) {
    const std::span<const T> from = place.kind == Kind::kInput    ? inputs
                                    : place.kind == Kind::kOutput ? outputs
                                    : place.kind == Kind::kInner  ? inner
                                                                  : std::span<const T>();
    const auto i = static_cast<size_t>(place.index);
    selected.push_back(i < from.size() ? from[i] : none);
  }
  return selected;
}

// The inner tensors that are in memory, as parts of an input; null for the others.
std::vector<const TensorDesc*> PartsOfInputs(const Fused& op,
                                             const std::vector<TensorDesc>& inner) {
  std::vector<const TensorDesc*> parts(inner.size());
  for (const Fused::Member& member : op.members) {
    if (member.op.As<SliceOf>() != nullptr && member.inputs[0].kind == Kind::kInput &&
        member.outputs[0].kind == Kind::kInner) {
      const auto i = static_cast<size_t>(member.outputs[0].index);
      parts[i] = &inner[i];
    }
  }
  return parts;
}

// Other tensors between members are not in memory, so nobody reads them twice.
const ReadAgain<Fused> fused([](const Fused& op, OperandDescs inputs, OperandDescs outputs) {
  const auto present = [](OperandDescs operands) {
    std::vector<TensorDesc> descs;
    for (const TensorDesc* desc : operands) descs.push_back(desc == nullptr ? TensorDesc() : *desc);
    return descs;
  };
  const std::vector<TensorDesc> inner = op.InnerDescs(present(inputs), present(outputs));
  const std::vector<const TensorDesc*> parts = PartsOfInputs(op, inner);
  double bytes = 0;
  for (const Fused::Member& member : op.members) {
    const auto select = [&](const std::vector<Place>& places) {
      return Select<const TensorDesc*>(places, inputs, outputs, parts, nullptr);
    };
    bytes += BytesReadAgain(member.op, select(member.inputs), select(member.outputs));
  }
  return bytes;
});

// Adds the node's operands of one kind that `operands` of a member's places are.
void Collect(const std::vector<Place>& places, const OperandSet& operands, Kind kind,
             OperandSet* set) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (operands.contains(i) && places[i].kind == kind)
      set->insert(static_cast<size_t>(places[i].index));
  }
}

// True if a member may have a tensor channels-last that another one takes plain. All tensors of the
// first are then plain, because the operands of an op have one layout.
bool SharesPlainTensor(const Fused& region) {
  return std::ranges::any_of(std::array{Kind::kInput, Kind::kOutput, Kind::kInner}, [&](Kind kind) {
    OperandSet channels_last, plain;
    for (const Fused::Member& member : region.members) {
      const LayoutRule rule = member.op.layout_rule();
      const auto sort = [&](const std::vector<Place>& places, const OperandSet& may_be) {
        for (size_t i = 0; i < places.size(); ++i) {
          if (places[i].kind != kind) continue;
          (may_be.contains(i) ? channels_last : plain).insert(static_cast<size_t>(places[i].index));
        }
      };
      sort(member.inputs, rule.inputs);
      sort(member.outputs, rule.outputs);
    }
    return channels_last.overlaps(plain);
  });
}

bool IsImage(const TensorDesc& desc) {
  return desc.shape.num_axes() == 4;
}

Layout LayoutOf(std::span<const TensorDesc> operands, const OperandSet& images) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (images.contains(i) && IsImage(operands[i])) return operands[i].layout;
  }
  return Layout::kPlain;
}

}  // namespace

bool Fused::Is(std::initializer_list<std::string_view> names) const {
  return std::ranges::equal(members, names, {}, [](const Member& one) { return one.op.name(); });
}

int Fused::InputOf(size_t member, int operand) const {
  const std::vector<Place>& places = members[member].inputs;
  const auto i = static_cast<size_t>(operand);
  return i < places.size() && places[i].kind == Kind::kInput ? places[i].index : -1;
}

std::vector<TensorDesc> Fused::InnerDescs(std::span<const TensorDesc> inputs,
                                          std::span<const TensorDesc> outputs) const {
  const LayoutRule rule = layout_rule();
  Layout layout = LayoutOf(inputs, rule.inputs);
  if (layout == Layout::kPlain) layout = LayoutOf(outputs, rule.outputs);
  OperandSet images;
  for (const Member& member : members)
    Collect(member.outputs, member.op.layout_rule().outputs, Kind::kInner, &images);
  std::vector<TensorDesc> descs;
  for (size_t i = 0; i < inner.size(); ++i) {
    TensorDesc& desc = descs.emplace_back();
    desc.shape = inner[i].shape;
    desc.dtype = inner[i].dtype.value_or(inputs[0].dtype);
    desc.scale = inner[i].scale;
    if (images.contains(i) && IsImage(desc)) desc.layout = layout;
  }
  return descs;
}

std::string Fused::Attributes() const {
  std::string text;
  for (const Member& member : members) {
    const std::string attributes = member.op.Attributes();
    text += StrCat(text.empty() ? "" : " ", member.op.name(),
                   attributes.empty() ? "" : StrCat("[", attributes, "]"));
  }
  return text;
}

LayoutRule Fused::layout_rule() const {
  LayoutRule rule;
  for (const Member& member : members) {
    const LayoutRule one = member.op.layout_rule();
    Collect(member.inputs, one.inputs, Kind::kInput, &rule.inputs);
    Collect(member.outputs, one.outputs, Kind::kOutput, &rule.outputs);
    rule.prefers_channels_last |= one.prefers_channels_last;
  }
  return SharesPlainTensor(*this) ? LayoutRule() : rule;
}

NumericRule Fused::numeric_rule() const {
  const bool has_product = std::ranges::any_of(
      members, [](const Member& member) { return member.op.numeric_rule() == NumericRule::kMath; });
  return has_product ? NumericRule::kMath : NumericRule::kStorage;
}

OperandSet Fused::updates() const {
  OperandSet updates;
  for (const Member& member : members)
    Collect(member.outputs, member.op.updates(), Kind::kOutput, &updates);
  return updates;
}

OperandSet Fused::item_inputs() const {
  OperandSet items, shared;
  for (const Member& member : members) {
    const OperandSet of_member = member.op.item_inputs();
    if (!of_member.overlaps(OperandSet::All())) return {};
    for (size_t i = 0; i < member.inputs.size(); ++i) {
      const Place& place = member.inputs[i];
      if (place.kind == Kind::kAbsent) continue;
      if (place.kind != Kind::kInput) {
        if (!of_member.contains(i)) return {};
      } else {
        (of_member.contains(i) ? items : shared).insert(static_cast<size_t>(place.index));
      }
    }
  }
  return items.overlaps(shared) ? OperandSet() : items;
}

Fused Fused::ForItems(int64_t items) const {
  Fused region = *this;
  for (InnerTensor& tensor : region.inner) tensor.shape = tensor.shape.With(0, items);
  return region;
}

bool Fused::in_place() const {
  const auto writer = std::ranges::find_if(members, [](const Member& member) {
    return std::ranges::find(member.outputs, Output(0)) != member.outputs.end();
  });
  const auto reads_input = [](const Member& member) {
    return std::ranges::find(member.inputs, Kind::kInput, &Place::kind) != member.inputs.end();
  };
  return writer != members.end() && writer->op.in_place() &&
         std::none_of(writer + 1, members.end(), reads_input);
}

double Fused::Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const {
  const std::vector<TensorDesc> between = InnerDescs(inputs, outputs);
  double flops = 0;
  for (const Member& member : members) {
    const auto select = [&](const std::vector<Place>& places) {
      return Select<TensorDesc>(places, inputs, outputs, between, TensorDesc());
    };
    flops += member.op.Flops(select(member.inputs), select(member.outputs));
  }
  return flops;
}

}  // namespace caffe::ops
