#include "caffe/ops/norm.hpp"

#include "caffe/ops/read_again.hpp"

namespace caffe::ops {
namespace {

// Reads x for the statistics, and again to normalize it.
const ReadAgain<BatchNorm> batch_norm([](const BatchNorm&, OperandDescs inputs, OperandDescs) {
  return BytesOf(inputs, BatchNorm::kX);
});

// Reads x, dy and y for the sums, and again for dx. If the first pass has stored dresidual, the
// second pass reads it instead of dy and y.
const ReadAgain<BatchNormGrad> batch_norm_grad([](const BatchNormGrad&, OperandDescs inputs,
                                                  OperandDescs outputs) {
  if (BytesOf(outputs, BatchNormGrad::kDx) == 0) return 0.0;
  const double behind_relu = BytesOf(outputs, BatchNormGrad::kDresidual);
  const double dy = behind_relu > 0
                        ? behind_relu
                        : BytesOf(inputs, BatchNormGrad::kDy) + BytesOf(inputs, BatchNormGrad::kY);
  return BytesOf(inputs, BatchNormGrad::kX) + dy;
});

}  // namespace
}  // namespace caffe::ops
