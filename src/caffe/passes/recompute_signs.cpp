// A row that lets the gradient of a normalization with a ReLU after it compute y again, instead of
// reading it:
//
//   BatchNorm[relu](x) -> y, BatchNormGrad(x, dy, y)
//           -> BatchNorm[relu], Fused{BatchNormInference[relu](x) -> y, BatchNormGrad(x, dy, y)}
//
// Both of the gradient's passes over memory then read two tensors instead of three. It follows
// fuse-gradient-epilogues, which takes the ReLU's gradient where a residual was added: y then
// depends on more than x.
#include "caffe/ops/norm.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using Norm = ops::BatchNorm;
using Given = ops::BatchNormInference;
using Grad = ops::BatchNormGrad;

bool IsReluAlone(const ops::Epilogue& epilogue) {
  return epilogue.size() == 1 && ops::EndsInRelu(epilogue) && epilogue[0].a == 0;
}

// Both see the same x and round y alike.
bool SeeOneType(const Node& norm, const Node& grad) {
  const Operand& x = grad.inputs[Grad::kX];
  const DType type = x->desc.dtype;
  return x.dtype == type && norm.inputs[Norm::kX].dtype == type && norm.outputs[0].dtype == type;
}

// The normalization whose result, after a ReLU, the gradient reads; null if y is more than that.
const Node* NormOf(const Fusion& fusion, const Node& grad) {
  const bool has_residual = grad.op.As<Grad>() != nullptr &&
                            grad.outputs.size() > Grad::kDresidual &&
                            grad.outputs[Grad::kDresidual] != nullptr;
  if (grad.op.As<Grad>() == nullptr || InputOf(grad, Grad::kY) == nullptr || has_residual)
    return nullptr;
  const Node* norm = fusion.WriterOf(grad.inputs[Grad::kMean]);
  const auto* op = norm == nullptr ? nullptr : norm->op.As<Norm>();
  const bool is_its_result = op != nullptr && IsReluAlone(op->epilogue) &&
                             norm->outputs[0] == grad.inputs[Grad::kY].value &&
                             norm->inputs[Norm::kX] == grad.inputs[Grad::kX].value &&
                             SeeOneType(*norm, grad);
  return is_its_result ? norm : nullptr;
}

bool RecomputeSigns(Fusion& fusion, Node& grad) {
  const Node* norm = NormOf(fusion, grad);
  if (norm == nullptr) return false;
  const Norm& op = *norm->op.As<Norm>();
  Node again{.op = Given{op.eps, op.epilogue}};
  again.signature = grad.signature;
  again.inputs = {grad.inputs[Grad::kX],        grad.inputs[Grad::kMean],
                  grad.inputs[Grad::kVariance], Operand(),
                  InputOf(*norm, Norm::kGamma), InputOf(*norm, Norm::kBeta)};
  again.outputs = {norm->outputs[0]};
  Node gradient = grad;
  gradient.outputs.resize(std::min<size_t>(grad.outputs.size(), Grad::kDbeta + 1));
  return fusion.Merge(again, gradient, norm->outputs[0], grad);
}

const FusionRow recompute_signs_row({.order = 50,
                                     .name = "recompute-signs",
                                     .apply = RecomputeSigns});

}  // namespace
}  // namespace caffe::passes
