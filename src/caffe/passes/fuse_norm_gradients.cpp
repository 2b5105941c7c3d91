#include <algorithm>

#include "caffe/ops/batch_norm_relu_grad.hpp"
#include "caffe/ops/conv_grad_norm.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

using ops::ConvGradData;
using ops::ConvGradNorm;
using Grad = ops::BatchNormReluGrad;
using OfSums = ops::BatchNormGradOfSums;
static_assert(int{Grad::kDy} == int{OfSums::kDz} && int{Grad::kGamma} == int{OfSums::kGamma} &&
              int{Grad::kDbeta} == int{OfSums::kDbeta});

}  // namespace

// After this pass the sums of a normalisation's gradient are made while the convolution's data
// gradient, which the normalisation's gradient reads, is in registers:
//
//   ConvGradData(dy, w) -> dz, BatchNormReluGrad(x, dz) -> dx, dgamma, dbeta
//       -> ConvGradNorm(dy, w, x) -> dz, sum, dot; BatchNormGradOfSums(x, dz, sum, dot) -> dx, ...
//
// The gradient then reads x twice and dz once, and not both twice. Where the device has a kernel
// for that which is better than a reference: on GPUs in float16. It follows recompute-signs, which
// makes BatchNormReluGrad.
class FuseNormGradients final : public Pass {
 public:
  std::string_view name() const override { return "fuse-norm-gradients"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all) return;
    const Fusion fusion(graph);
    for (Node* node : fusion.nodes()) {
      if (node->op.As<Grad>() == nullptr) continue;
      Node* conv = fusion.WriterOf(node->inputs[Grad::kDy]);
      if (conv == nullptr || fusion.OnlyReaderOf(conv->outputs[0]) != node) continue;
      if (IsFusable(*conv, *node) && IsServed(graph, *conv)) Fuse(graph, *conv, *node);
    }
  }

 private:
  static bool IsFusable(const Node& conv, const Node& grad) {
    const auto* op = conv.op.As<ConvGradData>();
    if (op == nullptr || !op->epilogue.empty() || grad.outputs[Grad::kDx] == nullptr ||
        !Fusion::HaveOneType(conv, grad.inputs[Grad::kDy], grad) || !HasScale(grad)) {
      return false;
    }
    return op->geometry.group == 1 && op->geometry.spatial_axes() == 2 &&
           conv.outputs[0]->desc.count() > 0 &&
           HasPackedChannels(*conv.inputs[ConvGradData::kDy]) &&
           HasPackedChannels(*conv.outputs[0]);
  }

  static bool HasScale(const Node& grad) {
    return grad.inputs.size() > Grad::kBeta && grad.inputs[Grad::kGamma] != nullptr &&
           grad.inputs[Grad::kBeta] != nullptr;
  }

  static bool IsServed(const Graph& graph, const Node& conv) {
    const auto& candidates =
        KernelRegistry::Get().Candidates(graph.options.device->kind(), typeid(ConvGradNorm));
    return std::ranges::any_of(candidates, [&](const KernelCandidate& candidate) {
      return candidate.rank < KernelRank::kReference && candidate.Serves(conv.signature);
    });
  }

  static void Fuse(Graph& graph, Node& conv, Node& grad) {
    const double eps = grad.op.As<Grad>()->eps;
    conv.op = ConvGradNorm{*conv.op.As<ConvGradData>(), eps};
    conv.inputs.resize(ConvGradNorm::kX);
    for (const int input : {Grad::kX, Grad::kMean, Grad::kVariance, Grad::kGamma, Grad::kBeta})
      conv.inputs.push_back(grad.inputs[static_cast<size_t>(input)]);
    conv.outputs.resize(1);
    grad.inputs.resize(OfSums::kSum);  // the first ones are the same
    for (const char* name : {"sum", "dot"}) {
      Value& sum = SumOf(graph, grad, name);
      conv.outputs.emplace_back(&sum).role = Role::kExact;
      grad.inputs.emplace_back(&sum).role = Role::kExact;
    }
    Fusion::AddLayers(conv, grad);
    grad.op = OfSums{eps};
  }

  // Of each channel, for the gradient alone.
  static Value& SumOf(Graph& graph, const Node& grad, const char* name) {
    const Value& mean = *grad.inputs[Grad::kMean];
    Value& sum = graph.NewValue(StrCat(grad.inputs[Grad::kDy]->name, " ", name), mean.desc.shape,
                                DType::kFloat, ValueKind::kActivation);
    sum.layer = grad.layers.front();
    sum.at_least_float = true;
    return sum;
  }
};

std::unique_ptr<Pass> MakeFuseNormGradients() {
  return std::make_unique<FuseNormGradients>();
}

}  // namespace caffe::passes
