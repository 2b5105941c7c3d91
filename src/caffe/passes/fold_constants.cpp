#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/fold.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

using Fold = ops::FoldChannels;

// The operands of FoldChannels that a node which works channel by channel provides. Empty for other
// nodes.
std::vector<Operand> ChannelOperands(const Node& node) {
  std::vector<Operand> operands(Fold::kNumInputs);
  const auto* scale = node.op.As<ops::ScaleShift>();
  if (node.op.As<ops::BatchNormInference>() != nullptr) {
    using Norm = ops::BatchNormInference;
    operands[Fold::kMean] = InputOf(node, Norm::kMean);
    operands[Fold::kVariance] = InputOf(node, Norm::kVariance);
    operands[Fold::kFactor] = InputOf(node, Norm::kFactor);
    operands[Fold::kGamma] = InputOf(node, Norm::kGamma);
    operands[Fold::kBeta] = InputOf(node, Norm::kBeta);
  } else if (scale != nullptr && scale->is_per_channel()) {
    operands[Fold::kGamma] = InputOf(node, 1);
    operands[Fold::kBeta] = InputOf(node, 2);
  } else {
    return {};
  }
  return operands;
}

// Indexes of a product's weights, with a row for each channel of the result, and of its bias.
struct ProductOperands {
  size_t weights = 0, bias = 0;
};

std::optional<ProductOperands> ProductOf(const Node& node) {
  if (node.op.As<ops::Conv>() != nullptr) return ProductOperands{ops::Conv::kW, ops::Conv::kBias};
  const auto* gemm = node.op.As<ops::Gemm>();
  const Shape& y = node.outputs[0]->desc.shape;
  const bool has_rows_of_channels = gemm != nullptr && gemm->transpose_b && y.num_axes() >= 2 &&
                                    y[1] == gemm->columns && y[0] == gemm->rows;
  if (!has_rows_of_channels) return std::nullopt;
  return ProductOperands{ops::Gemm::kB, ops::Gemm::kBias};
}

}  // namespace

// After this pass, in plans without backward, normalizations with given statistics and scales that
// follow a convolution or a product are part of its weights and bias. Folded weights are kept from
// run to run like other copies of weights (graph/weight_copies.hpp), and recomputed when a
// parameter has changed. It precedes the fusing passes, so that later ops are fused with the
// product.
class FoldConstants final : public Pass {
 public:
  std::string_view name() const override { return "fold-constants"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all || graph.options.with_backward) return;
    graph_ = &graph;
    readers_ = Readers(graph);
    writers_ = Writers(graph);
    changed_ = WrittenParams(graph);
    std::vector<Node*> folded;
    for (Node* node : graph.ScheduledNodes()) {
      if (FoldNode(*node)) folded.push_back(node);
    }
    graph.Erase(folded);
  }

 private:
  bool FoldNode(Node& node) {
    const std::vector<Operand> operands = ChannelOperands(node);
    if (!std::ranges::all_of(operands, [&](const Operand& one) { return IsConstant(one); }) ||
        operands.empty()) {
      return false;
    }
    const Operand& x = node.inputs[0];
    const auto writer = writers_.find(x);
    if (writer == writers_.end() || x->is_kept || readers_.at(x).size() != 1) return false;
    Node& product = *writer->second;
    const std::optional<ProductOperands> own = ProductOf(product);
    if (!own || !IsAlike(product, node)) return false;
    const auto earlier = folds_.find(&product);
    if (earlier != folds_.end()) {
      if (!AddScale(*earlier->second, operands)) return false;
    } else {
      const bool is_constant =
          IsConstant(product.inputs[own->weights]) && IsConstant(InputOf(product, own->bias));
      if (!is_constant) return false;
      folds_[&product] = &FoldInto(product, *own, node, operands);
    }
    static_cast<Operand&>(product.outputs[0]) = node.outputs[0];
    writers_[node.outputs[0]] = &product;
    product.layers.insert(product.layers.end(), node.layers.begin(), node.layers.end());
    return true;
  }

  // True if no conversion will be inserted between them.
  static bool IsAlike(const Node& product, const Node& node) {
    const DType type = node.inputs[0]->desc.dtype;
    return product.outputs[0] == node.inputs[0].value && product.outputs[0].dtype == type &&
           node.inputs[0].dtype == type && node.outputs[0].dtype == type &&
           node.outputs[0]->desc.dtype == type &&
           node.outputs[0]->desc.shape == node.inputs[0]->desc.shape;
  }

  bool IsConstant(const Operand& operand) const {
    if (operand == nullptr) return true;
    return operand->kind == ValueKind::kParam && changed_.count(operand.value->root()) == 0;
  }

  // Adds a scale that follows a normalization which is already folded.
  static bool AddScale(Node& fold, const std::vector<Operand>& operands) {
    const bool has_scale = fold.inputs[Fold::kGamma] != nullptr;
    if (has_scale || operands[Fold::kGamma] == nullptr) return false;
    for (const size_t input : {Fold::kGamma, Fold::kBeta}) {
      fold.inputs[input].value = operands[input].value;
      if (operands[input] != nullptr) fold.inputs[input].dtype = operands[input]->desc.dtype;
    }
    return true;
  }

  Node& FoldInto(Node& product, const ProductOperands& own, const Node& node,
                 const std::vector<Operand>& operands) {
    const Operand weights = product.inputs[own.weights];
    Value& folded = NewCopy(*weights.value, weights->desc.shape);
    Value& bias = NewCopy(*weights.value, Shape{product.outputs[0]->desc.shape[1]});
    while (product.inputs.size() <= own.bias) product.inputs.emplace_back();
    std::vector<Value*> inputs(operands.begin(), operands.end());
    inputs[Fold::kW] = weights;
    inputs[Fold::kBias] = product.inputs[own.bias];
    const auto* norm = node.op.As<ops::BatchNormInference>();
    Node& fold = graph_->InsertBefore(product, Fold{norm != nullptr ? norm->eps : 0},
                                      std::move(inputs), {&folded, &bias});
    fold.signature = {weights->desc.dtype, weights->desc.dtype};
    product.inputs[own.weights].value = &folded;
    product.inputs[own.bias] = Operand(&bias);
    product.inputs[own.bias].dtype = bias.desc.dtype;
    product.inputs[own.bias].role = Role::kParameter;
    return fold;
  }

  Value& NewCopy(const Value& weights, Shape shape) {
    Value& copy = graph_->NewValue(weights.name + " folded", std::move(shape), weights.desc.dtype,
                                   ValueKind::kState);
    copy.at_least_float = true;
    copy.layer = weights.layer;
    return copy;
  }

  Graph* graph_ = nullptr;
  std::map<const Value*, std::vector<Node*>> readers_;
  std::map<const Value*, Node*> writers_;
  std::set<const Value*> changed_;      // parameters that the run writes
  std::map<const Node*, Node*> folds_;  // product -> its FoldChannels
};

std::unique_ptr<Pass> MakeFoldConstants() {
  return std::make_unique<FoldConstants>();
}

}  // namespace caffe::passes
