#include "caffe/ops/norm.hpp"

#include "caffe/ops/read_again.hpp"

namespace caffe::ops {
namespace {

// x for the statistics, and again to be normalised.
const ReadAgain<BatchNorm> batch_norm([](const BatchNorm&, OperandDescs inputs, OperandDescs) {
  return BytesOf(inputs, BatchNorm::kX);
});

// x, dy and y for the sums, and again for dx. The dy behind the ReLU that the first pass may have
// written stands for dy and y then.
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
