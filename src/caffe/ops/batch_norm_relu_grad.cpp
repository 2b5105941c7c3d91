#include "caffe/ops/batch_norm_relu_grad.hpp"

#include "caffe/ops/read_again.hpp"

namespace caffe::ops {
namespace {

// Reads x and dy for the sums, and again for dx.
const ReadAgain<BatchNormReluGrad> batch_norm_relu_grad([](const BatchNormReluGrad&,
                                                           OperandDescs inputs,
                                                           OperandDescs outputs) {
  if (BytesOf(outputs, BatchNormReluGrad::kDx) == 0) return 0.0;
  return BytesOf(inputs, BatchNormReluGrad::kX) + BytesOf(inputs, BatchNormReluGrad::kDy);
});

}  // namespace
}  // namespace caffe::ops
