#include "caffe/graph/filter_operand.hpp"

#include "caffe/ops/conv.hpp"
#include "caffe/ops/fused.hpp"

namespace caffe {
namespace {

// Index of the filter among the node's inputs, of a convolution that reads input 0; -1 for others.
int FilterOf(const Op& op) {
  if (op.As<ops::Conv>() != nullptr) return ops::Conv::kW;
  if (op.As<ops::ConvGradData>() != nullptr) return ops::ConvGradData::kW;
  const auto* region = op.As<ops::Fused>();
  if (region == nullptr || region->InputOf(0, 0) != 0) return -1;
  const int filter = FilterOf(region->members[0].op);
  return filter < 0 ? -1 : region->InputOf(0, filter);
}

}  // namespace

int FilterOfChannelsLastImages(const Node& node) {
  const int filter = FilterOf(node.op);
  if (filter < 0 || node.inputs[0] == nullptr) return -1;
  const TensorDesc& images = node.inputs[0]->desc;
  return images.layout == Layout::kChannelsLast && !Is8Bit(images.dtype) ? filter : -1;
}

}  // namespace caffe
