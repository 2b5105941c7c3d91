// Rows for concatenations along the channels, so that nothing is copied. Convolutions and
// normalizations write into the result:
//
//   Conv(x1) -> a, BatchNorm(x2) -> b, Concat(a, b) -> y
//     -> Fused{Conv(x1) -> a, InsertChannels(a) -> whole},
//        Fused{BatchNorm(x2) -> b, InsertChannels(b, whole) -> y}
//
// Channels are last. One of the inputs may be another op's result, which is copied:
// InsertChannels(c, whole). plan-memory gives the tensors of such a chain one place. Programs run
// on other kernels, which share no memory so.
//
// The gradients of normalizations read their part of the result's gradient:
//
//   SliceOf(dwhole) -> dy, BatchNormGrad(x, dy)
//     -> Fused{SliceOf(dwhole) -> dy, BatchNormGrad(x, dy)}
#include <algorithm>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using ops::Conv;
using ops::InsertChannels;

// Parts begin where vendors' engines can begin to write, in bytes.
constexpr int64_t kPartAlignment = 16;

struct Part {
  Node* writer = nullptr;  // null: the part is copied
  Operand result;
  InsertChannels insert;
  int64_t step = 0;

  Node Insertion(const Operand& whole, const Result& to, const Signature& signature) const {
    Node node{.op = insert};
    node.inputs = {result, whole};
    node.outputs = {to};
    node.signature = signature;
    return node;
  }
};

bool IsChannelsLastImage(const Value& value) {
  return value.desc.shape.num_axes() == 4 && value.desc.layout == Layout::kChannelsLast;
}

bool IsAligned(const Value& value, int64_t channels) {
  return channels * static_cast<int64_t>(SizeOf(value.desc.dtype)) % kPartAlignment == 0;
}

bool ReadsNothing(const ops::Epilogue& epilogue) {
  const auto reads = [](const ops::Pointwise& entry) { return entry.operand >= 0; };
  return std::ranges::none_of(epilogue, reads);
}

// Index of the last operand that ops of this type have; -1 if none of their kernels writes parts.
int LastInput(const Node& node) {
  if (const auto* conv = node.op.As<Conv>())
    return ReadsNothing(conv->epilogue) && conv->geometry.group == 1 ? Conv::kBias : -1;
  if (const auto* norm = node.op.As<ops::BatchNorm>())
    return ReadsNothing(norm->epilogue) ? ops::BatchNorm::kBeta : -1;
  if (const auto* given = node.op.As<ops::BatchNormInference>())
    return ReadsNothing(given->epilogue) ? ops::BatchNormInference::kBeta : -1;
  return -1;
}

// The same node with all inputs that it may have, so that they keep their indexes.
Node Padded(const Node& node) {
  const auto last = static_cast<size_t>(LastInput(node));
  Node padded = node;
  SetInput(padded, last, InputOf(node, last));
  return padded;
}

bool MayWritePart(const Fusion& fusion, const Node& writer, const Operand& part,
                  const Node& concat) {
  return fusion.OnlyReaderOf(part) == &concat && writer.outputs[0].value == part.value &&
         writer.direction == concat.direction && LastInput(writer) >= 0;
}

// How the parts are written, in the order of the schedule; none if two of them were copied, or all.
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
    const int64_t channels = input->desc.shape[1];
    if (!IsChannelsLastImage(*input) || !IsAligned(*input, offset) ||
        input->desc.dtype != whole.desc.dtype || input->desc.scale != whole.desc.scale) {
      return {};
    }
    Part& part = parts.emplace_back(Part{nullptr, input, {offset, channels}, fusion.StepOf(node)});
    offset += channels;
    Node* writer = fusion.WriterOf(input);
    if (writer == nullptr || !MayWritePart(fusion, *writer, input, node)) continue;
    const Node insertion = part.Insertion(node.outputs[0], node.outputs[0], writer->signature);
    if (!fusion.CanMerge(Padded(*writer), insertion, part.result)) continue;
    part.writer = writer;
    part.step = fusion.StepOf(*writer);
  }
  const auto copied = std::ranges::count(parts, nullptr, &Part::writer);
  if (copied > 1 || copied == std::ssize(parts)) return {};
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
    const bool is_last = &part == &parts.back();
    Result to = concat.outputs[0];
    if (!is_last) to.value = &Copy(fusion.graph(), *to.value);
    if (part.writer == nullptr) {  // the last one
      concat.op = part.insert;
      concat.inputs = {part.result, whole};
      return true;
    }
    fusion.Merge(Padded(*part.writer), part.Insertion(whole, to, part.writer->signature),
                 part.result, *part.writer);
    if (is_last) AddLayers(*part.writer, concat);
    whole = to;
  }
  if (!parts.empty()) fusion.Erase(concat);
  return !parts.empty();
}

// True if the node is the gradient of a normalization, perhaps with the ReLU's signs.
bool IsNormGrad(const Node& node) {
  const auto* region = node.op.As<ops::Fused>();
  return node.op.As<ops::BatchNormGrad>() != nullptr ||
         (region != nullptr &&
          region->Is({ops::BatchNormInference::kName, ops::BatchNormGrad::kName}));
}

bool ReadPartOfGradient(Fusion& fusion, Node& node) {
  const auto* slice = node.op.As<ops::SliceOf>();
  if (slice == nullptr || slice->axis != 1 || slice->in_place) return false;
  const Value &whole = *node.inputs[0], &part = *node.outputs[0];
  Node* grad = fusion.OnlyReaderOf(&part);
  const bool is_part = IsChannelsLastImage(whole) && part.desc.shape[1] < whole.desc.shape[1] &&
                       part.desc.dtype == whole.desc.dtype && IsAligned(whole, slice->offset) &&
                       IsAligned(whole, whole.desc.shape[1]) && IsAligned(part, part.desc.shape[1]);
  if (!is_part || grad == nullptr || !IsNormGrad(*grad)) return false;
  if (!fusion.Merge(node, *grad, &part, *grad)) return false;
  fusion.Erase(node);
  return true;
}

const FusionRow write_into_concats_row({.order = kBeforeLayouts + 20,
                                        .name = "write-into-concats",
                                        .apply = WriteIntoConcat,
                                        .for_any_processor = false});
const FusionRow read_parts_row({.order = kBeforeLayouts + 30,
                                .name = "write-into-concats",
                                .apply = ReadPartOfGradient,
                                .for_any_processor = false});

}  // namespace
}  // namespace caffe::passes
