// A row that sums the bias gradient of a convolution after a ReLU while the ReLU's gradient is
// still in registers, instead of by a pass over memory of its own:
//
//   ReluGrad -> dx, ConvGradWeights(dx) -> dw, dbias
//                                -> Fused{ReluGrad -> dx, SumToAxes(dx) -> dbias}, ConvGradWeights
//
// A vendor's convolution may compute both gradients at once.
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using ops::ConvGradWeights;

bool FuseBiasGradient(Fusion& fusion, Node& grad) {
  if (grad.op.As<ConvGradWeights>() == nullptr || grad.outputs.size() <= ConvGradWeights::kDbias ||
      grad.outputs[ConvGradWeights::kDw] == nullptr ||
      grad.outputs[ConvGradWeights::kDbias] == nullptr) {
    return false;
  }
  const Operand& dy = grad.inputs[ConvGradWeights::kDy];
  Node* relu_grad = fusion.WriterOf(dy);
  if (relu_grad == nullptr || relu_grad->op.As<ops::ReluGrad>() == nullptr ||
      relu_grad->outputs[0].dtype != dy.dtype || dy->desc.dtype != dy.dtype) {
    return false;
  }
  Node sum{.op = ops::SumToAxes{{1, 1}}};
  sum.inputs = {dy};
  sum.outputs = {grad.outputs[ConvGradWeights::kDbias]};
  sum.signature = relu_grad->signature;
  sum.layers = grad.layers;
  if (!fusion.Merge(*relu_grad, sum, nullptr, *relu_grad)) return false;
  grad.outputs.resize(ConvGradWeights::kDbias);
  return true;
}

const FusionRow bias_gradients_row({.order = 40,
                                    .name = "fuse-bias-gradients",
                                    .apply = FuseBiasGradient});

}  // namespace
}  // namespace caffe::passes
