#include <algorithm>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/relu_grad_sum.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass the bias's gradient of a convolution in front of a ReLU is summed up while the
// ReLU's gradient is still in registers, instead of by a pass of its own over what that has stored:
//
//   ReluGrad, ConvGradWeights(dw, dbias) -> ReluGradSum(dx, dbias), ConvGradWeights(dw)
//
// Where the device has a kernel for that which is better than a reference; a vendor's convolution
// may make both gradients at once. It follows assign-precision, so that it knows types, and comes
// before mark-accumulation, which looks at who makes a parameter's gradient.
class FuseBiasGradients final : public Pass {
 public:
  std::string_view name() const override { return "fuse-bias-gradients"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all) return;
    const auto writers = Writers(graph);
    for (Node* node : graph.ScheduledNodes()) {
      if (!MakesBiasGradient(*node)) continue;
      const Operand& dy = node->inputs[ops::ConvGradWeights::kDy];
      const auto writer = writers.find(dy);
      if (writer != writers.end() && IsFusable(graph, *writer->second, dy))
        Fuse(*writer->second, *node);
    }
  }

 private:
  static bool MakesBiasGradient(const Node& node) {
    using Grad = ops::ConvGradWeights;
    return node.op.As<Grad>() != nullptr && node.outputs.size() > Grad::kDbias &&
           node.outputs[Grad::kDw] != nullptr && node.outputs[Grad::kDbias] != nullptr;
  }

  // Both nodes have one idea of the gradient's type, and a kernel serves it.
  static bool IsFusable(const Graph& graph, const Node& relu_grad, const Operand& dy) {
    if (relu_grad.op.As<ops::ReluGrad>() == nullptr) return false;
    const DType type = relu_grad.outputs[0].dtype;
    if (dy.dtype != type || dy->desc.dtype != type) return false;
    const auto& candidates =
        KernelRegistry::Get().Candidates(graph.options.device->kind(), typeid(ops::ReluGradSum));
    return std::ranges::any_of(candidates, [&](const KernelCandidate& candidate) {
      return candidate.rank < KernelRank::kReference && candidate.Serves(relu_grad.signature);
    });
  }

  static void Fuse(Node& relu_grad, Node& grad_weights) {
    Result& dbias = grad_weights.outputs[ops::ConvGradWeights::kDbias];
    relu_grad.op = ops::ReluGradSum{relu_grad.op.As<ops::ReluGrad>()->negative_slope};
    relu_grad.outputs.resize(1);
    relu_grad.outputs.push_back(dbias);
    grad_weights.outputs.resize(ops::ConvGradWeights::kDbias);
    Fusion::AddLayers(relu_grad, grad_weights);
  }
};

std::unique_ptr<Pass> MakeFuseBiasGradients() {
  return std::make_unique<FuseBiasGradients>();
}

}  // namespace caffe::passes
