// Rows that make pointwise work part of the op before it, which then happens while that op's result
// is still in registers:
//
//   BatchNorm, ScaleShift                 -> BatchNorm(gamma, beta), and its gradient likewise
//   X, Relu | Clip | Swish                -> X[..., relu], where X is any op with an epilogue
//   X, EltwiseSum of two                  -> X[..., add]
//   BatchNorm[..., relu] and its gradient -> the gradient reads y instead of a ReluGrad before it
//
// An entry is added if every kernel of the device for the node's types applies the longer epilogue.
#include "caffe/passes/fuse_epilogues.hpp"

#include <algorithm>

#include "caffe/ops/activations.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::passes {
namespace {

using ops::BatchNorm;
using ops::BatchNormGrad;
using ops::BatchNormInference;
using ops::Pointwise;

}  // namespace

std::optional<Pointwise> EntryOf(const Node& node) {
  if (const auto* relu = node.op.As<ops::Relu>(); relu != nullptr && relu->negative_slope >= 0)
    return Pointwise{Pointwise::Kind::kRelu, relu->negative_slope};
  if (const auto* clip = node.op.As<ops::Clip>())
    return Pointwise{Pointwise::Kind::kClip, clip->least, clip->most};
  if (const auto* swish = node.op.As<ops::Swish>())
    return Pointwise{Pointwise::Kind::kSwish, swish->beta};
  return std::nullopt;
}

namespace {

// The node that writes the value, if its epilogue can grow by what the only reader does.
Node* Growing(const Fusion& fusion, const Operand& value, const Node& reader) {
  Node* writer = fusion.WriterOf(value);
  const bool grows = writer != nullptr && writer->op.epilogue() != nullptr &&
                     writer->outputs[0] == value.value && fusion.OnlyReaderOf(value) == &reader &&
                     HaveOneType(*writer, value, reader);
  return grows ? writer : nullptr;
}

Node* GradientOf(const Fusion& fusion, const Node& norm) {
  return fusion.ReaderWith<BatchNormGrad>(norm.outputs[BatchNorm::kMean],
                                          [](const Node&) { return true; });
}

bool AreOneType(const Operand& a, const Operand& b, const Operand& c) {
  return a->desc.dtype == a.dtype && b.dtype == a.dtype && b->desc.dtype == a.dtype &&
         c.dtype == a.dtype;
}

void AppendScale(Fusion& fusion, Node& norm, Node& scale, size_t gamma) {
  SetInput(norm, gamma, scale.inputs[1]);
  SetInput(norm, gamma + 1, InputOf(scale, 2));
  fusion.Absorb(norm, scale);
}

// In training x^ = BatchNorm(x), y = gamma x^ + beta has four nodes in backward (gradients of
// gamma, beta, x^ and x), which BatchNormGrad computes together. All of them must be there.
bool TakeGradients(Fusion& fusion, const Node& scale, Node& grad) {
  const auto is_same_layer = [&](const Node& node) {
    return node.layers.front() == scale.layers.front() && node.direction == Direction::kBackward;
  };
  const Operand& normalised = scale.inputs[0];
  Node* gamma_grad = fusion.ReaderWith<ops::SumToAxes>(normalised, is_same_layer);
  if (gamma_grad == nullptr || gamma_grad->inputs.size() != 2 ||
      fusion.ReadersOf(normalised).size() != 2) {
    return false;
  }
  const Operand dy = gamma_grad->inputs[0];
  Node* data_grad = fusion.ReaderWith<ops::ScaleShift>(dy, is_same_layer);
  Node* beta_grad = fusion.ReaderWith<ops::SumToAxes>(
      dy, [&](const Node& node) { return is_same_layer(node) && node.inputs.size() == 1; });
  const bool has_beta = scale.inputs.size() > 2;
  Operand& norm_dy = grad.inputs[BatchNormGrad::kDy];
  if (data_grad == nullptr || has_beta != (beta_grad != nullptr) ||
      norm_dy != data_grad->outputs[0] || fusion.ReadersOf(norm_dy).size() != 1 ||
      !AreOneType(dy, norm_dy, data_grad->outputs[0])) {
    return false;
  }
  norm_dy = dy;
  SetInput(grad, BatchNormGrad::kGamma, scale.inputs[1]);
  grad.outputs.push_back(gamma_grad->outputs[0]);
  grad.outputs.push_back(beta_grad != nullptr ? beta_grad->outputs[0] : Result());
  AddLayers(grad, *gamma_grad);
  for (Node* node : {gamma_grad, beta_grad, data_grad}) {
    if (node != nullptr) fusion.Erase(*node);
  }
  return true;
}

bool FuseScale(Fusion& fusion, Node& scale) {
  const auto* op = scale.op.As<ops::ScaleShift>();
  if (op == nullptr || !op->is_per_channel()) return false;
  const Operand& input = scale.inputs[0];
  Node* norm = fusion.WriterOf(input);
  if (norm == nullptr || input->is_kept || scale.inputs[1]->kind != ValueKind::kParam ||
      !HaveOneType(*norm, input, scale)) {
    return false;
  }
  const bool is_training = norm->op.As<BatchNorm>() != nullptr;
  if (!is_training && norm->op.As<BatchNormInference>() == nullptr) return false;
  const size_t gamma = is_training ? size_t{BatchNorm::kGamma} : size_t{BatchNormInference::kGamma};
  if (norm->inputs.size() > gamma) return false;
  Node* grad = is_training ? GradientOf(fusion, *norm) : nullptr;
  const bool fits =
      grad == nullptr ? fusion.ReadersOf(input).size() == 1 : TakeGradients(fusion, scale, *grad);
  if (fits) AppendScale(fusion, *norm, scale, gamma);
  return fits;
}

// After a sum the ReLU's gradient is also that of the other operand. BatchNormGrad writes it, too,
// if it runs before all other nodes that read it.
bool HandOverResidual(const Fusion& fusion, Node& grad, const Node& relu_grad) {
  const Result& masked = relu_grad.outputs[0];
  const bool runs_first = std::ranges::all_of(fusion.ReadersOf(masked), [&](const Node* node) {
    return fusion.StepOf(*node) >= fusion.StepOf(grad);
  });
  if (!runs_first || masked->is_kept) return false;
  while (grad.outputs.size() <= BatchNormGrad::kDresidual) {
    grad.outputs.emplace_back();
    grad.outputs.back().dtype = grad.signature.data;
  }
  grad.outputs[BatchNormGrad::kDresidual] = masked;
  return true;
}

// A normalization's gradient takes the place of the ReluGrad before it. False if there is a
// gradient that could not be computed after the entry.
bool TakeReluGradient(Fusion& fusion, const Node& relu, Node& norm, const Pointwise& entry) {
  Node* grad = GradientOf(fusion, norm);
  Value* y = relu.outputs[0];
  Node* relu_grad = fusion.ReaderWith<ops::ReluGrad>(y, [&](const Node& node) {
    return node.inputs[0] == y && node.layers.front() == relu.layers.front();
  });
  if (grad == nullptr) return relu_grad == nullptr;
  if (relu_grad == nullptr || entry.kind != Pointwise::Kind::kRelu || entry.a != 0) return false;
  const Operand dy = relu_grad->inputs[1];
  Value* masked = relu_grad->outputs[0];
  if (grad->inputs[BatchNormGrad::kDy] != masked ||
      !AreOneType(dy, grad->inputs[BatchNormGrad::kDy], relu_grad->outputs[0])) {
    return false;
  }
  const bool has_residual = ops::AddedOperand(*norm.op.epilogue()) >= 0;
  if (has_residual ? !HandOverResidual(fusion, *grad, *relu_grad)
                   : fusion.ReadersOf(masked).size() != 1) {
    return false;
  }
  grad->inputs[BatchNormGrad::kDy] = dy;
  SetInput(*grad, BatchNormGrad::kY, Operand(relu_grad->inputs[0]));
  AddLayers(*grad, *relu_grad);
  fusion.Erase(*relu_grad);
  return true;
}

}  // namespace

bool FuseActivation(Fusion& fusion, Node& node) {
  const std::optional<Pointwise> entry = EntryOf(node);
  Node* writer = entry ? Growing(fusion, node.inputs[0], node) : nullptr;
  if (writer == nullptr) return false;
  ops::Epilogue epilogue = *writer->op.epilogue();
  epilogue.push_back(*entry);
  if (!fusion.Serves(*writer, epilogue)) return false;
  if (writer->op.As<BatchNorm>() != nullptr && !TakeReluGradient(fusion, node, *writer, *entry))
    return false;
  writer->op = writer->op.WithEpilogue(std::move(epilogue));
  fusion.Absorb(*writer, node);
  return true;
}

namespace {

// Most sums become entries themselves, with what follows them.
bool FuseActivationUnlessOfSum(Fusion& fusion, Node& node) {
  const Node* writer = node.inputs.empty() ? nullptr : fusion.WriterOf(node.inputs[0]);
  return writer != nullptr && writer->op.As<ops::EltwiseSum>() == nullptr &&
         FuseActivation(fusion, node);
}

// Number of operands that the op itself may have; those of the epilogue come after them.
size_t NumOwnInputs(const Node& node) {
  if (node.op.As<BatchNormInference>() != nullptr) return BatchNormInference::kBeta + 1;
  if (node.op.As<ops::ConvGradData>() != nullptr) return ops::ConvGradData::kW + 1;
  return 3;  // x, gamma, beta; x, w, bias; a, b, bias
}

}  // namespace

bool FuseSum(Fusion& fusion, Node& sum) {
  const auto* op = sum.op.As<ops::EltwiseSum>();
  if (op == nullptr || !op->is_plain() || sum.inputs.size() != 2) return false;
  const int last = fusion.StepOf(sum.inputs[1]) > fusion.StepOf(sum.inputs[0]) ? 1 : 0;
  const Operand computed = sum.inputs[last], residual = sum.inputs[1 - last];
  Node* writer = Growing(fusion, computed, sum);
  if (writer == nullptr || writer->op.As<ops::EltwiseSum>() != nullptr ||
      !IsLike(residual, computed)) {
    return false;
  }
  const size_t operand = std::max(writer->inputs.size(), NumOwnInputs(*writer));
  ops::Epilogue epilogue = *writer->op.epilogue();
  epilogue.push_back({Pointwise::Kind::kAdd, 0, 0, static_cast<int>(operand)});
  epilogue.insert(epilogue.end(), op->epilogue.begin(), op->epilogue.end());
  if (!fusion.Serves(*writer, epilogue)) return false;
  SetInput(*writer, operand, residual);
  writer->op = writer->op.WithEpilogue(std::move(epilogue));
  fusion.Absorb(*writer, sum);
  return true;
}

namespace {

constexpr std::string_view kEpilogues = "fuse-epilogues";
const FusionRow scales_row(
    {.order = 10, .name = kEpilogues, .apply = FuseScale, .direction = Direction::kForward});
const FusionRow activations_row({.order = 11,
                                 .name = kEpilogues,
                                 .apply = FuseActivationUnlessOfSum,
                                 .direction = Direction::kForward});
const FusionRow sums_row(
    {.order = 12, .name = kEpilogues, .apply = FuseSum, .direction = Direction::kForward});
const FusionRow activations_of_sums_row(
    {.order = 13, .name = kEpilogues, .apply = FuseActivation, .direction = Direction::kForward});

}  // namespace
}  // namespace caffe::passes
