// A row that sums a normalization's statistics while the convolution before it has its result in
// registers, which saves one of the normalization's two reads:
//
//   Conv(x) -> y, BatchNorm(y) -> z, mean, variance
//     -> Fused{Conv(x) -> y, ChannelStatistics(y) -> mean, variance}, BatchNormInference(y, ...)
//
// It follows recompute-signs, which looks for BatchNorm, and fuse-epilogues, which gives the
// normalization its scale, residual and ReLU.
#include "caffe/ops/conv.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using ops::BatchNorm;
using Given = ops::BatchNormInference;

// The normalization's own operands move, and so does what its epilogue adds.
void ReadStatistics(Node& norm, const Operand& mean, const Operand& variance) {
  const BatchNorm op = *norm.op.As<BatchNorm>();
  const Node before = norm;
  norm.outputs.resize(1);
  norm.inputs.resize(1);
  SetInput(norm, Given::kMean, mean);
  SetInput(norm, Given::kVariance, variance);
  SetInput(norm, Given::kGamma, InputOf(before, BatchNorm::kGamma));
  SetInput(norm, Given::kBeta, InputOf(before, BatchNorm::kBeta));
  ops::Epilogue epilogue = op.epilogue;
  for (ops::Pointwise& entry : epilogue) {
    if (entry.operand < 0) continue;
    const Operand added = InputOf(before, static_cast<size_t>(entry.operand));
    entry.operand = static_cast<int>(norm.inputs.size());
    SetInput(norm, norm.inputs.size(), added);
  }
  norm.op = Given{op.eps, std::move(epilogue)};
}

bool FuseStatistics(Fusion& fusion, Node& norm) {
  if (norm.op.As<BatchNorm>() == nullptr) return false;
  const Operand y = norm.inputs[BatchNorm::kX];
  Node* conv = fusion.WriterOf(y);
  if (conv == nullptr || conv->op.As<ops::Conv>() == nullptr || conv->outputs[0] != y.value ||
      conv->direction != Direction::kForward || !HaveOneType(*conv, y, norm)) {
    return false;
  }
  Node statistics{.op = ops::ChannelStatistics{}};
  const Result mean = norm.outputs[BatchNorm::kMean], variance = norm.outputs[BatchNorm::kVariance];
  statistics.inputs = {y};
  statistics.outputs = {mean, variance};
  statistics.signature = conv->signature;
  if (!fusion.Merge(*conv, statistics, nullptr, *conv)) return false;
  ReadStatistics(norm, mean, variance);
  return true;
}

const FusionRow statistics_row({.order = 60,
                                .name = "fuse-statistics",
                                .apply = FuseStatistics,
                                .direction = Direction::kForward});

}  // namespace
}  // namespace caffe::passes
