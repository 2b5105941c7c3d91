#include "caffe/graph/filter_operand.hpp"

#include "caffe/ops/conv_grad_norm.hpp"
#include "caffe/ops/conv_into.hpp"
#include "caffe/ops/conv_statistics.hpp"

namespace caffe {
namespace {

// Index of the filter; -1 if the op's type is not one of `Ops`.
template <typename... Ops>
int FilterOf(const Op& op) {
  int filter = -1;
  ((filter = op.As<Ops>() != nullptr ? static_cast<int>(Ops::kW) : filter), ...);
  return filter;
}

}  // namespace

int FilterOfChannelsLastImages(const Node& node) {
  const int filter =
      FilterOf<ops::Conv, ops::ConvInto, ops::ConvStatistics, ops::ConvGradData, ops::ConvGradNorm>(
          node.op);
  if (filter < 0 || node.inputs[0] == nullptr) return -1;
  const TensorDesc& images = node.inputs[0]->desc;
  return images.layout == Layout::kChannelsLast && !Is8Bit(images.dtype) ? filter : -1;
}

}  // namespace caffe
