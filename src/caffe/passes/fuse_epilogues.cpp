#include <algorithm>
#include <optional>

#include "caffe/ops/activations.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

using ops::Pointwise;

}  // namespace

// After this pass what follows a convolution, a product, a sum or a normalisation element by
// element happens while that result is still in registers: one pass over memory instead of several.
//
//   X, Relu | Clip | Swish                -> X[..., relu], X being any op with an epilogue
//   X, EltwiseSum of two                  -> X[..., add]
//   BatchNorm, ScaleShift                 -> BatchNorm(gamma, beta), and its gradient likewise
//   BatchNorm[..., relu] and its gradient -> the gradient reads y in place of a ReluGrad before it
//
// An entry is added where every kernel of the device that serves the node's types declares that it
// applies the longer epilogue. It follows assign-precision, so that it knows those types, and comes
// before conversions are inserted, which would stand between the nodes. A keep-all plan is left
// alone: its blobs must exist.
class FuseEpilogues final : public Pass {
 public:
  std::string_view name() const override { return "fuse-epilogues"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all) return;
    graph_ = &graph;
    ForEachForward([&](Node& node) { FuseScale(node); });
    // Sums wait: most of them become entries themselves, with what follows them.
    ForEachForward([&](Node& node) {
      const Node* writer = node.inputs.empty() ? nullptr : fusion_->WriterOf(node.inputs[0]);
      if (writer != nullptr && writer->op.As<ops::EltwiseSum>() == nullptr) FuseEntry(node);
    });
    ForEachForward([&](Node& node) { fusion_->AbsorbSum(node); });
    ForEachForward([&](Node& node) { FuseEntry(node); });
  }

 private:
  // Visits the forward nodes, of the graph as the visit before has left it.
  template <typename Fn>
  void ForEachForward(Fn fn) {
    fusion_.emplace(*graph_);
    for (Node* node : fusion_->nodes()) {
      if (node->direction == Direction::kForward && !fusion_->IsErased(node)) fn(*node);
    }
    fusion_->Finish();
  }

  // The one node with op T that satisfies `accepts` among the readers of `value`.
  template <typename T, typename Accepts>
  Node* ReaderWith(const Value* value, Accepts accepts) const {
    for (Node* node : fusion_->ReadersOf(value)) {
      if (node->op.As<T>() != nullptr && !fusion_->IsErased(node) && accepts(*node)) return node;
    }
    return nullptr;
  }

  size_t NumReaders(const Value* value) const { return fusion_->ReadersOf(value).size(); }

  void FuseEntry(Node& node) {
    const std::optional<Pointwise> entry = EntryOf(node);
    if (!entry) return;
    const Operand& input = node.inputs[0];
    Node* writer = fusion_->WriterOf(input);
    if (writer == nullptr || writer->op.epilogue() == nullptr || writer->outputs[0] != input ||
        input->is_kept || NumReaders(input) != 1 || !Fusion::HaveOneType(*writer, input, node)) {
      return;
    }
    ops::Epilogue epilogue = *writer->op.epilogue();
    epilogue.push_back(*entry);
    if (!fusion_->IsServed(*writer, epilogue)) return;
    if (writer->op.As<ops::BatchNorm>() != nullptr && !FuseGradient(node, *writer, *entry)) return;
    writer->op = writer->op.WithEpilogue(std::move(epilogue));
    fusion_->Absorb(*writer, node);
  }

  // The gradient of a normalisation takes the place of the ReluGrad before it. False where there is
  // a gradient that could not be computed behind the entry.
  bool FuseGradient(const Node& relu, Node& norm, const Pointwise& entry) {
    Node* grad = FindNormGrad(norm);
    Value* y = relu.outputs[0];
    Node* relu_grad = ReaderWith<ops::ReluGrad>(y, [&](const Node& node) {
      return node.inputs[0] == y && node.layers.front() == relu.layers.front();
    });
    if (grad == nullptr) return relu_grad == nullptr;
    if (relu_grad == nullptr || entry.kind != Pointwise::Kind::kRelu || entry.a != 0) return false;
    const Operand dy = relu_grad->inputs[1];
    Value* masked = relu_grad->outputs[0];
    if (grad->inputs[ops::BatchNormGrad::kDy] != masked ||
        !IsOneType(dy, grad->inputs[ops::BatchNormGrad::kDy], relu_grad->outputs[0])) {
      return false;
    }
    const bool has_residual = ops::AddedOperand(*norm.op.epilogue()) >= 0;
    if (has_residual ? !HandOverResidual(*grad, *relu_grad) : NumReaders(masked) != 1) return false;
    grad->inputs[ops::BatchNormGrad::kDy] = dy;
    Operand mask = relu_grad->inputs[0];
    Fusion::SetInput(*grad, ops::BatchNormGrad::kY, mask);
    Fusion::AddLayers(*grad, *relu_grad);
    fusion_->Erase(*relu_grad);
    return true;
  }

  static bool IsOneType(const Operand& a, const Operand& b, const Operand& c) {
    return a->desc.dtype == a.dtype && b.dtype == a.dtype && b->desc.dtype == a.dtype &&
           c.dtype == a.dtype;
  }

  // Behind a sum the cut-off gradient is also that of the other operand. BatchNormGrad makes it
  // beside its own results, if it runs before whoever else reads it.
  bool HandOverResidual(Node& grad, const Node& relu_grad) {
    const Result& masked = relu_grad.outputs[0];
    const bool runs_first = std::ranges::all_of(fusion_->ReadersOf(masked), [&](const Node* node) {
      return fusion_->StepOf(*node) >= fusion_->StepOf(grad);
    });
    if (!runs_first || masked->is_kept) return false;
    while (grad.outputs.size() <= ops::BatchNormGrad::kDresidual) {
      grad.outputs.emplace_back();
      grad.outputs.back().dtype = grad.signature.data;
    }
    grad.outputs[ops::BatchNormGrad::kDresidual] = masked;
    return true;
  }

  Node* FindNormGrad(const Node& norm) const {
    return ReaderWith<ops::BatchNormGrad>(norm.outputs[ops::BatchNorm::kMean],
                                          [](const Node&) { return true; });
  }

  void FuseScale(Node& scale) {
    const auto* op = scale.op.As<ops::ScaleShift>();
    if (op == nullptr || !op->is_per_channel()) return;
    const Operand& input = scale.inputs[0];
    Node* norm = fusion_->WriterOf(input);
    if (norm == nullptr || input->is_kept || scale.inputs[1]->kind != ValueKind::kParam ||
        !Fusion::HaveOneType(*norm, input, scale)) {
      return;
    }
    const size_t gamma = norm->op.As<ops::BatchNorm>() != nullptr
                             ? static_cast<size_t>(ops::BatchNorm::kGamma)
                             : static_cast<size_t>(ops::BatchNormInference::kGamma);
    if (norm->inputs.size() > gamma) return;
    if (norm->op.As<ops::BatchNormInference>() != nullptr) {
      if (NumReaders(input) == 1) AppendScale(*norm, scale, gamma);
    } else if (norm->op.As<ops::BatchNorm>() != nullptr) {
      FuseScaleIntoNorm(scale, *norm);
    }
  }

  void AppendScale(Node& norm, Node& scale, size_t gamma) {
    Fusion::SetInput(norm, gamma, scale.inputs[1]);
    Fusion::SetInput(norm, gamma + 1, scale.inputs.size() > 2 ? scale.inputs[2] : Operand());
    fusion_->Absorb(norm, scale);
  }

  // Training: x^ = BatchNorm(x), y = gamma x^ + beta has four nodes in backward (gradients of
  // gamma, beta, x^ and x), which BatchNormGrad computes together. All of them must be there.
  void FuseScaleIntoNorm(Node& scale, Node& norm) {
    Node* grad = FindNormGrad(norm);
    const Operand normalised = scale.inputs[0];
    if (grad == nullptr) {
      if (NumReaders(normalised) == 1) AppendScale(norm, scale, ops::BatchNorm::kGamma);
      return;
    }
    const auto is_same_layer = [&](const Node& node) {
      return node.layers.front() == scale.layers.front() && node.direction == Direction::kBackward;
    };
    Node* gamma_grad = ReaderWith<ops::SumToAxes>(normalised, is_same_layer);
    if (gamma_grad == nullptr || gamma_grad->inputs.size() != 2 || NumReaders(normalised) != 2)
      return;
    const Operand dy = gamma_grad->inputs[0];
    Node* data_grad = ReaderWith<ops::ScaleShift>(dy, is_same_layer);
    Node* beta_grad = ReaderWith<ops::SumToAxes>(
        dy, [&](const Node& node) { return is_same_layer(node) && node.inputs.size() == 1; });
    const bool has_beta = scale.inputs.size() > 2;
    if (data_grad == nullptr || has_beta != (beta_grad != nullptr)) return;
    Operand& norm_dy = grad->inputs[ops::BatchNormGrad::kDy];
    if (norm_dy != data_grad->outputs[0] || NumReaders(norm_dy) != 1 ||
        !IsOneType(dy, norm_dy, data_grad->outputs[0])) {
      return;
    }
    norm_dy = dy;
    Fusion::SetInput(*grad, ops::BatchNormGrad::kGamma, scale.inputs[1]);
    grad->outputs.push_back(gamma_grad->outputs[0]);
    grad->outputs.push_back(beta_grad != nullptr ? beta_grad->outputs[0] : Result());
    Fusion::AddLayers(*grad, *gamma_grad);
    for (Node* node : {gamma_grad, beta_grad, data_grad}) {
      if (node != nullptr) fusion_->Erase(*node);
    }
    AppendScale(norm, scale, ops::BatchNorm::kGamma);
  }

  Graph* graph_ = nullptr;
  std::optional<Fusion> fusion_;
};

std::unique_ptr<Pass> MakeFuseEpilogues() {
  return std::make_unique<FuseEpilogues>();
}

}  // namespace caffe::passes
