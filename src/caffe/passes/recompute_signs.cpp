#include <algorithm>

#include "caffe/ops/batch_norm_relu_grad.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass the gradient of a normalisation with a ReLU behind it reads x and dy, and not y:
//
//   BatchNorm[relu](x, gamma, beta), BatchNormGrad(x, dy, gamma, y)
//                                 -> BatchNorm[relu], BatchNormReluGrad(x, dy, gamma, beta)
//
// Both of its passes over memory then read two tensors and not three. Where the device has a kernel
// for that which is better than a reference. It follows fuse-gradient-epilogues, which takes the
// ReLU's gradient where a residual was added: there y depends on more than x.
class RecomputeSigns final : public Pass {
 public:
  std::string_view name() const override { return "recompute-signs"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all) return;
    const Fusion fusion(graph);
    for (Node* node : fusion.nodes()) {
      const Node* norm = NormBehind(fusion, *node);
      if (norm != nullptr && IsServed(graph, *node)) Rewrite(*node, *norm);
    }
  }

 private:
  using Norm = ops::BatchNorm;
  using Grad = ops::BatchNormGrad;
  using ReluGrad = ops::BatchNormReluGrad;

  // The one whose result behind a ReLU the gradient reads; null where y is more than that.
  static const Node* NormBehind(const Fusion& fusion, const Node& grad) {
    if (grad.op.As<Grad>() == nullptr || grad.inputs.size() <= Grad::kY ||
        grad.inputs[Grad::kY] == nullptr || HasResidual(grad)) {
      return nullptr;
    }
    const Node* norm = fusion.WriterOf(grad.inputs[Grad::kMean]);
    const auto* op = norm == nullptr ? nullptr : norm->op.As<Norm>();
    const bool is_its_result =
        op != nullptr && op->epilogue.size() == 1 && ops::EndsInRelu(op->epilogue) &&
        op->epilogue[0].a == 0 && norm->outputs[0] == grad.inputs[Grad::kY].value &&
        norm->inputs[Norm::kX] == grad.inputs[Grad::kX].value && HasOneType(*norm, grad);
    return is_its_result ? norm : nullptr;
  }

  static bool HasResidual(const Node& grad) {
    return grad.outputs.size() > Grad::kDresidual && grad.outputs[Grad::kDresidual] != nullptr;
  }

  // Only then both see the same x and round y alike.
  static bool HasOneType(const Node& norm, const Node& grad) {
    const Operand& x = grad.inputs[Grad::kX];
    const Operand& read = norm.inputs[Norm::kX];
    const DType type = x->desc.dtype;
    return x.dtype == type && read.dtype == type && norm.outputs[0].dtype == type;
  }

  static bool IsServed(const Graph& graph, const Node& grad) {
    const auto& candidates =
        KernelRegistry::Get().Candidates(graph.options.device->kind(), typeid(ReluGrad));
    return std::ranges::any_of(candidates, [&](const KernelCandidate& candidate) {
      return candidate.rank < KernelRank::kReference && candidate.Serves(grad.signature);
    });
  }

  static void Rewrite(Node& grad, const Node& norm) {
    const auto parameter = [&](size_t i) {
      return norm.inputs.size() > i ? norm.inputs[i] : Operand();
    };
    grad.op = ReluGrad{grad.op.As<Grad>()->eps};
    grad.inputs.resize(ReluGrad::kGamma);
    Fusion::SetInput(grad, ReluGrad::kGamma, parameter(Norm::kGamma));
    Fusion::SetInput(grad, ReluGrad::kBeta, parameter(Norm::kBeta));
    grad.outputs.resize(std::min<size_t>(grad.outputs.size(), ReluGrad::kDbeta + 1));
  }
};

std::unique_ptr<Pass> MakeRecomputeSigns() {
  return std::make_unique<RecomputeSigns>();
}

}  // namespace caffe::passes
