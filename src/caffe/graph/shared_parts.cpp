#include "caffe/graph/shared_parts.hpp"

#include "caffe/ops/convert.hpp"
#include "caffe/ops/fused.hpp"

namespace caffe {

namespace {

// The tensor whose other channels the node leaves as they are; null if there is none.
const Value* WholeBefore(const Node& node) {
  if (node.op.As<ops::InsertChannels>() != nullptr)
    return node.inputs.size() > ops::InsertChannels::kWhole
               ? node.inputs[ops::InsertChannels::kWhole].value
               : nullptr;
  const auto* region = node.op.As<ops::Fused>();
  if (region == nullptr || region->members.back().op.As<ops::InsertChannels>() == nullptr)
    return nullptr;
  const int whole = region->InputOf(region->members.size() - 1, ops::InsertChannels::kWhole);
  return whole < 0 ? nullptr : node.inputs[static_cast<size_t>(whole)].value;
}

}  // namespace

std::vector<SharedPart> SharedParts(const Node& node) {
  std::vector<SharedPart> parts;
  const auto* concat = node.op.As<ops::Concat>();
  const auto* slice = node.op.As<ops::SliceOf>();
  if (concat != nullptr && concat->in_place) {
    int64_t offset = 0;
    for (const Value* input : node.inputs) {
      parts.push_back({input, node.outputs[0], offset});
      offset += static_cast<int64_t>(input->desc.bytes());
    }
  } else if (slice != nullptr && slice->in_place) {
    const TensorDesc& whole = node.inputs[0]->desc;
    const int64_t inner = ops::AroundAxis(whole, slice->axis).inner;
    const auto element = static_cast<int64_t>(SizeOf(whole.dtype));
    parts.push_back({node.outputs[0], node.inputs[0], slice->offset * inner * element});
  } else if (const Value* whole = WholeBefore(node)) {
    parts.push_back({whole, node.outputs[0], 0});
  } else if (node.op.is_view() && node.inputs[0] != nullptr && node.outputs[0] != nullptr) {
    parts.push_back({node.outputs[0], node.inputs[0], 0});
  }
  return parts;
}

}  // namespace caffe
