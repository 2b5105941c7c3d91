#include <algorithm>

#include "caffe/ops/conv_statistics.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

using ops::BatchNorm;
using ops::ConvStatistics;

// The vendor's engines that sum statistics have windows of at most so many places along an axis.
constexpr int64_t kWidestWindow = 5;

}  // namespace

// After this pass the statistics of a normalisation are summed while the convolution in front of it
// has its result in registers, which saves one of the normalisation's two reads:
//
//   Conv(x) -> y, BatchNorm(y) -> z, mean, variance
//                       -> ConvStatistics(x) -> y, mean, variance; BatchNormInference(y, ...) -> z
//
// Where the device has a kernel for that which is better than a reference: on GPUs in float16. It
// follows recompute-signs, which looks for BatchNorm, and fuse-epilogues, which gives the
// normalisation its scale, residual and ReLU.
class FuseStatistics final : public Pass {
 public:
  std::string_view name() const override { return "fuse-statistics"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all) return;
    const Fusion fusion(graph);
    for (Node* node : fusion.nodes()) {
      if (node->op.As<BatchNorm>() == nullptr || node->direction != Direction::kForward) continue;
      Node* conv = fusion.WriterOf(node->inputs[BatchNorm::kX]);
      if (conv != nullptr && IsFusable(*conv, *node) && IsServed(graph, *conv)) Fuse(*conv, *node);
    }
  }

 private:
  static bool IsFusable(const Node& conv, const Node& norm) {
    const auto* op = conv.op.As<ops::Conv>();
    const bool has_bias = conv.inputs.size() > ops::Conv::kBias && conv.inputs[ops::Conv::kBias];
    if (op == nullptr || conv.direction != Direction::kForward || has_bias ||
        !op->epilogue.empty() || conv.outputs[0] != norm.inputs[BatchNorm::kX].value ||
        !Fusion::HaveOneType(conv, norm.inputs[BatchNorm::kX], norm)) {
      return false;
    }
    return IsGeometryServed(op->geometry) && HasPackedChannels(*conv.inputs[ops::Conv::kX]) &&
           HasPackedChannels(*conv.outputs[0]);
  }

  static bool IsGeometryServed(const ops::ConvGeometry& geometry) {
    return geometry.group == 1 && geometry.spatial_axes() == 2 &&
           std::ranges::max(geometry.kernel) <= kWidestWindow;
  }

  static bool IsServed(const Graph& graph, const Node& conv) {
    const auto& candidates =
        KernelRegistry::Get().Candidates(graph.options.device->kind(), typeid(ConvStatistics));
    return std::ranges::any_of(candidates, [&](const KernelCandidate& candidate) {
      return candidate.rank < KernelRank::kReference && candidate.Serves(conv.signature);
    });
  }

  static void Fuse(Node& conv, Node& norm) {
    conv.op = ConvStatistics{*conv.op.As<ops::Conv>()};
    conv.inputs.resize(ConvStatistics::kW + 1);
    conv.outputs.resize(1);
    conv.outputs.push_back(norm.outputs[BatchNorm::kMean]);
    conv.outputs.push_back(norm.outputs[BatchNorm::kVariance]);
    norm.outputs.resize(1);
    ReadStatistics(norm, conv.outputs[ConvStatistics::kMean],
                   conv.outputs[ConvStatistics::kVariance]);
  }

  // The normalisation's own operands move, and so does what its epilogue adds.
  static void ReadStatistics(Node& norm, const Operand& mean, const Operand& variance) {
    using Given = ops::BatchNormInference;
    const BatchNorm op = *norm.op.As<BatchNorm>();
    const std::vector<Operand> operands = norm.inputs;
    const auto operand = [&](size_t i) { return i < operands.size() ? operands[i] : Operand(); };
    norm.inputs.resize(1);
    Fusion::SetInput(norm, Given::kMean, mean);
    Fusion::SetInput(norm, Given::kVariance, variance);
    Fusion::SetInput(norm, Given::kGamma, operand(BatchNorm::kGamma));
    Fusion::SetInput(norm, Given::kBeta, operand(BatchNorm::kBeta));
    ops::Epilogue epilogue = op.epilogue;
    for (ops::Pointwise& entry : epilogue) {
      if (entry.operand < 0) continue;
      const Operand added = operand(static_cast<size_t>(entry.operand));
      entry.operand = static_cast<int>(norm.inputs.size());
      Fusion::SetInput(norm, norm.inputs.size(), added);
    }
    norm.op = Given{op.eps, std::move(epilogue)};
  }
};

std::unique_ptr<Pass> MakeFuseStatistics() {
  return std::make_unique<FuseStatistics>();
}

}  // namespace caffe::passes
