// A row that lets convolutions whose results a concatenation joins along the channels write into
// its result, so that nothing is copied:
//
//   Conv(x1) -> a, Conv(x2) -> b, Concat(a, b) -> y
//     -> Fused{Conv(x1) -> a, InsertChannels(a) -> whole},
//        Fused{Conv(x2) -> b, InsertChannels(b, whole) -> y}
//
// All inputs of the concatenation must be such results, with channels last. plan-memory gives the
// tensors of such a chain one place. Programs run on other kernels, which share no memory so.
#include <algorithm>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using ops::Conv;
using ops::InsertChannels;

// Parts begin where vendors' engines can begin to write, in bytes.
constexpr int64_t kPartAlignment = 16;

struct Part {
  Node* conv = nullptr;
  Operand result;
  InsertChannels insert;
  int64_t step = 0;

  Node Insertion(const Operand& whole, const Result& to) const {
    Node node{.op = insert};
    node.inputs = {result, whole};
    node.outputs = {to};
    node.signature = conv->signature;
    return node;
  }
  // The operands of the convolution keep their indexes.
  Node Padded() const {
    Node node = *conv;
    SetInput(node, Conv::kBias, InputOf(*conv, Conv::kBias));
    return node;
  }
};

bool IsChannelsLastImage(const Value& value) {
  return value.desc.shape.num_axes() == 4 && value.desc.layout == Layout::kChannelsLast;
}

bool IsAligned(const Value& value, int64_t channels) {
  return channels * static_cast<int64_t>(SizeOf(value.desc.dtype)) % kPartAlignment == 0;
}

bool IsFusable(const Node& conv, const Value& part, const Node& concat) {
  const auto* op = conv.op.As<Conv>();
  const auto reads = [](const ops::Pointwise& entry) { return entry.operand >= 0; };
  return op != nullptr && std::ranges::none_of(op->epilogue, reads) && conv.outputs.size() == 1 &&
         conv.direction == concat.direction && IsChannelsLastImage(part) &&
         op->geometry.group == 1 && part.desc.dtype == concat.outputs[0]->desc.dtype &&
         part.desc.scale == concat.outputs[0]->desc.scale;
}

// The convolutions whose results the node joins, in the order of the schedule; none if one of its
// inputs is something else.
std::vector<Part> PartsOf(Fusion& fusion, const Node& node) {
  const auto* concat = node.op.As<ops::Concat>();
  if (concat == nullptr || concat->axis != 1 || concat->in_place) return {};
  const Value& whole = *node.outputs[0];
  if (whole.kind != ValueKind::kActivation || whole.is_kept || !IsChannelsLastImage(whole) ||
      !IsAligned(whole, whole.desc.shape[1])) {
    return {};
  }
  std::vector<Part> parts;
  int64_t offset = 0;
  for (const Operand& input : node.inputs) {
    Node* conv = fusion.WriterOf(input);
    if (conv == nullptr || fusion.OnlyReaderOf(input) != &node || !IsAligned(*input, offset) ||
        !IsFusable(*conv, *input, node)) {
      return {};
    }
    const int64_t channels = input->desc.shape[1];
    const Part& part =
        parts.emplace_back(Part{conv, input, {offset, channels}, fusion.StepOf(*conv)});
    const Node insertion = part.Insertion(node.outputs[0], node.outputs[0]);
    if (!fusion.CanMerge(part.Padded(), insertion, part.result)) return {};
    offset += channels;
  }
  std::ranges::sort(parts, {}, &Part::step);
  return parts;
}

Value& Copy(Graph& graph, const Value& whole) {
  Value& copy =
      graph.NewValue(whole.name, whole.desc.shape, whole.desc.dtype, ValueKind::kActivation);
  copy.desc = whole.desc;
  copy.layer = whole.layer;
  return copy;
}

// Each part writes into what the one before has left; the last one writes the concatenation's
// result.
bool WriteIntoConcat(Fusion& fusion, Node& concat) {
  const std::vector<Part> parts = PartsOf(fusion, concat);
  Operand whole;
  for (const Part& part : parts) {
    Result to = concat.outputs[0];
    if (&part != &parts.back()) to.value = &Copy(fusion.graph(), *to.value);
    fusion.Merge(part.Padded(), part.Insertion(whole, to), part.result, *part.conv);
    if (&part == &parts.back()) AddLayers(*part.conv, concat);
    whole = to;
  }
  if (!parts.empty()) fusion.Erase(concat);
  return !parts.empty();
}

const FusionRow write_into_concats_row({.order = kBeforeLayouts + 20,
                                        .name = "write-into-concats",
                                        .apply = WriteIntoConcat,
                                        .for_any_processor = false});

}  // namespace
}  // namespace caffe::passes
