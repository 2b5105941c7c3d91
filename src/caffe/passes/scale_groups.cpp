#include "caffe/passes/scale_groups.hpp"

#include <algorithm>

#include "caffe/core/counted.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::passes {
namespace {

using Range = BlobRanges::Range;

constexpr float kLeastQuantum = 1e-30F;

}  // namespace

bool IsProduct(const Op& op) {
  return op.As<ops::Conv>() != nullptr || op.As<ops::Gemm>() != nullptr ||
         op.As<ops::BatchedGemm>() != nullptr;
}

Value* WeightsBelow(Value* value, const std::function<Node*(const Value*)>& writer_of) {
  while (value->kind != ValueKind::kParam && value->kind != ValueKind::kState) {
    const Node* writer = writer_of(value);
    if (writer == nullptr || !writer->op.is_view()) return nullptr;
    value = writer->inputs[0];
  }
  return value;
}

bool MixesScales(const Op& op) {
  return op.As<ops::AvePool>() != nullptr || op.As<ops::EltwiseSum>() != nullptr;
}

bool PassesNumbers(const Op& op) {
  return op.As<ops::MaxPool>() != nullptr || op.As<ops::Concat>() != nullptr ||
         op.As<ops::SliceOf>() != nullptr || op.As<ops::Permute>() != nullptr || op.is_view();
}

const LayerParameter* OverwriterOf(const Graph& graph, const Value& value) {
  for (const LayerCall& call : graph.calls) {
    const bool reads = std::ranges::find(call.bottoms, &value) != call.bottoms.end();
    const bool makes_a_version = std::ranges::any_of(
        call.tops, [&](const Value* top) { return top != &value && top->name == value.name; });
    if (reads && makes_a_version) return &call.layer->param();
  }
  return nullptr;
}

std::string WhyNoRange(const Graph& graph, const Value& value) {
  const BlobRanges& ranges = *graph.options.ranges;
  const LayerParameter* overwriter = OverwriterOf(graph, value);
  if (overwriter == nullptr || !ranges.blobs.contains(value.name))
    return StrCat("blob '", value.name, "' has no range in ", ranges.file);
  return StrCat("blob '", value.name, "' is overwritten in place by ", PlaceOf(*overwriter),
                ", so that ", ranges.file,
                " has the range of what that layer makes alone; give its top another name");
}

std::string WhyNoRangeAtAll(const Graph& graph, const Value& value, std::string_view precision) {
  const BlobRanges& ranges = *graph.options.ranges;
  const LayerParameter* overwriter = OverwriterOf(graph, value);
  if (overwriter != nullptr && ranges.blobs.contains(value.name)) {
    return StrCat(ranges.file, ": has no range for any layer of precision ", precision, ": ",
                  WhyNoRange(graph, value), ", and run caffe calibrate on the changed net");
  }
  return StrCat(ranges.file, ": has the ranges of ", Counted(ranges.blobs.size(), "blob"),
                " of net '", ranges.net, "', but none of '", value.name,
                "' or of another blob that a layer of precision ", precision,
                " reads: run caffe calibrate on this net");
}

ScaleGroups::ScaleGroups(const Graph& graph, bool has_unsigned) : has_unsigned_(has_unsigned) {
  for (const auto& [blob, value] : graph.blobs) {
    const auto found = graph.options.ranges->blobs.find(blob);
    if (found != graph.options.ranges->blobs.end()) ranges_[value] = found->second;
  }
  // A view has the same numbers as its input. Dropout in place is a view, too.
  for (const Node* node : graph.ScheduledNodes()) {
    if (node->op.is_view() && node->direction == Direction::kForward)
      Join(node->outputs[0], node->inputs[0]);
  }
  for (const Value& value : graph.values()) {
    if (value.sampled_from != nullptr) Join(value.sampled_from, &value);
  }
}

std::optional<Range> ScaleGroups::RangeOf(const Value* value) const {
  const auto found = ranges_.find(Root(value));
  if (found == ranges_.end()) return std::nullopt;
  return found->second;
}

void ScaleGroups::Join(const Value* a, const Value* b) {
  a = Root(a), b = Root(b);
  if (a == b) return;
  const std::optional<Range> one = RangeOf(a), other = RangeOf(b);
  parents_[b] = a;
  if (signed_.contains(b)) signed_.insert(a);
  if (!one && other) ranges_[a] = *other;
  if (one && other) {
    ranges_[a] = {std::min(one->lowest, other->lowest), std::max(one->highest, other->highest)};
  }
}

void ScaleGroups::Quantise(const Value* value, TensorDesc* desc) const {
  const Range range = *RangeOf(value);
  const bool is_signed = range.lowest < 0 || !has_unsigned_ || signed_.contains(Root(value));
  desc->dtype = is_signed ? DType::kInt8 : DType::kUInt8;
  const float most = std::max(-range.lowest, range.highest);
  desc->scale = std::max(most / (is_signed ? 127 : 255), kLeastQuantum);
}

const Value* ScaleGroups::Root(const Value* value) const {
  for (auto found = parents_.find(value); found != parents_.end(); found = parents_.find(value))
    value = found->second;
  return value;
}

}  // namespace caffe::passes
