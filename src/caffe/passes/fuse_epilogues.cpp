#include <algorithm>

#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass what follows a convolution, a sum or a batch normalisation element by element
// happens while that result is still in registers: one pass over memory instead of up to four.
//
//   Conv, Relu                        -> Conv[relu]
//   EltwiseSum, Relu                  -> EltwiseSum[relu]
//   BatchNorm, ScaleShift[, Relu]     -> BatchNorm(gamma, beta)[relu], and its gradient likewise
//   BatchNormInference, ...           -> the same
//   BatchNorm, EltwiseSum of two      -> BatchNorm(gamma, beta, residual), and on a GPU its
//                                        gradient gives the residual's
//
// It follows assign-layouts, because a conversion between two ops keeps them apart, and comes
// before select-kernels. A keep-all plan is left alone: its blobs must exist.
class FuseEpilogues final : public Pass {
 public:
  std::string_view name() const override { return "fuse-epilogues"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all) return;
    graph_ = &graph;
    ForEach<ops::ScaleShift>([&](Node& scale) { FuseScale(scale); });
    ForEach<ops::Relu>([&](Node& relu) { FuseRelu(relu); });
    ForEach<ops::EltwiseSum>([&](Node& sum) { FuseSum(sum); });
  }

 private:
  // Visits the forward nodes with op T; the maps are anew for each, and fused nodes go away.
  template <typename T, typename Fn>
  void ForEach(Fn fn) {
    Refresh();
    for (Node* node : graph_->ScheduledNodes()) {
      if (node->op.As<T>() == nullptr || node->direction != Direction::kForward) continue;
      if (std::find(erased_.begin(), erased_.end(), node) == erased_.end()) fn(*node);
    }
    graph_->Erase(erased_);
    erased_.clear();
  }

  void Refresh() {
    readers_ = Readers(*graph_);
    writers_ = Writers(*graph_);
    steps_.clear();
    for (const Node* node : graph_->ScheduledNodes()) steps_.emplace(node, steps_.size());
  }

  // The node that writes `value`, if its op is T.
  template <typename T>
  Node* WriterWith(const Value* value) const {
    const auto found = writers_.find(value);
    return found != writers_.end() && found->second->op.As<T>() != nullptr ? found->second
                                                                           : nullptr;
  }

  // The one node with op T that satisfies `accepts` among the readers of `value`.
  template <typename T, typename Accepts>
  Node* ReaderWith(const Value* value, Accepts accepts) const {
    const auto found = readers_.find(value);
    if (found == readers_.end()) return nullptr;
    for (Node* node : found->second) {
      if (node->op.As<T>() != nullptr && accepts(*node)) return node;
    }
    return nullptr;
  }

  size_t NumReaders(const Value* value) const {
    const auto found = readers_.find(value);
    return found == readers_.end() ? 0 : found->second.size();
  }

  static bool SameStorage(const Value& a, const Value& b) {
    return a.desc.dtype == b.desc.dtype && a.desc.layout == b.desc.layout;
  }

  // `from` goes; `into` computes its output 0.
  void Absorb(Node& into, Node& from) {
    into.outputs[0] = from.outputs[0];
    AddLayers(into, from);
    erased_.push_back(&from);
  }

  static void AddLayers(Node& into, const Node& from) {
    for (const int layer : from.layers) {
      if (std::find(into.layers.begin(), into.layers.end(), layer) == into.layers.end()) {
        into.layers.push_back(layer);
      }
    }
  }

  // Null operands up to number `index`, then `value`.
  static void SetInput(Node& node, size_t index, Value* value) {
    while (node.inputs.size() < index) AppendInput(node, nullptr);
    AppendInput(node, value);
  }

  static void AppendInput(Node& node, Value* value) {
    node.inputs.push_back(value);
    node.wanted.push_back(value != nullptr ? value->desc.dtype : node.wanted.front());
  }

  void FuseRelu(Node& relu) {
    const Value* input = relu.inputs[0];
    const float slope = relu.op.As<ops::Relu>()->negative_slope;
    if (input->is_kept || NumReaders(input) != 1 || !SameStorage(*input, *relu.outputs[0])) return;
    if (Node* conv = WriterWith<ops::Conv>(input)) {
      ops::Conv op = *conv->op.As<ops::Conv>();
      if (op.has_relu || slope < 0) return;
      op.has_relu = true;
      op.negative_slope = slope;
      conv->op = op;
      Absorb(*conv, relu);
    } else if (slope != 0) {
      return;
    } else if (Node* sum = WriterWith<ops::EltwiseSum>(input)) {
      ops::EltwiseSum op = *sum->op.As<ops::EltwiseSum>();
      if (op.has_relu) return;
      op.has_relu = true;
      sum->op = op;
      Absorb(*sum, relu);
    } else if (Node* inference = WriterWith<ops::BatchNormInference>(input)) {
      ops::BatchNormInference op = *inference->op.As<ops::BatchNormInference>();
      if (op.has_relu) return;
      op.has_relu = true;
      inference->op = op;
      Absorb(*inference, relu);
    } else if (Node* norm = WriterWith<ops::BatchNorm>(input)) {
      FuseReluIntoNorm(relu, *norm);
    }
  }

  void FuseReluIntoNorm(Node& relu, Node& norm) {
    ops::BatchNorm op = *norm.op.As<ops::BatchNorm>();
    if (op.has_relu) return;
    Value* y = relu.outputs[0];
    Node* grad = FindNormGrad(norm);
    Node* relu_grad = ReaderWith<ops::ReluGrad>(y, [&](const Node& node) {
      return node.inputs[0] == y && node.layers.front() == relu.layers.front();
    });
    if ((grad == nullptr) != (relu_grad == nullptr)) return;
    if (grad != nullptr) {
      const Value* dy = relu_grad->inputs[1];
      if (grad->inputs[3] != relu_grad->outputs[0] || NumReaders(relu_grad->outputs[0]) != 1 ||
          !SameStorage(*dy, *grad->inputs[3])) {
        return;
      }
      ops::BatchNormGrad grad_op = *grad->op.As<ops::BatchNormGrad>();
      grad_op.has_relu = true;
      grad->op = grad_op;
      grad->inputs[3] = relu_grad->inputs[1];
      if (grad->inputs.size() == 4) AppendInput(*grad, nullptr);
      AppendInput(*grad, y);
      AddLayers(*grad, *relu_grad);
      erased_.push_back(relu_grad);
    }
    op.has_relu = true;
    norm.op = op;
    Absorb(norm, relu);
  }

  Node* FindNormGrad(const Node& norm) const {
    return ReaderWith<ops::BatchNormGrad>(norm.outputs[1], [](const Node&) { return true; });
  }

  void FuseScale(Node& scale) {
    const Value* input = scale.inputs[0];
    const bool is_per_channel = scale.op.As<ops::ScaleShift>()->is_per_channel();
    if (!is_per_channel || input->is_kept || scale.inputs[1]->kind != ValueKind::kParam ||
        !SameStorage(*input, *scale.outputs[0])) {
      return;
    }
    Node* inference = WriterWith<ops::BatchNormInference>(input);
    if (inference != nullptr && inference->inputs.size() == 4 && NumReaders(input) == 1) {
      AppendScale(*inference, scale);
    } else if (Node* norm = WriterWith<ops::BatchNorm>(input)) {
      if (norm->inputs.size() == 1) FuseScaleIntoNorm(scale, *norm);
    }
  }

  void AppendScale(Node& norm, Node& scale) {
    AppendInput(norm, scale.inputs[1]);
    AppendInput(norm, scale.inputs.size() > 2 ? scale.inputs[2] : nullptr);
    Absorb(norm, scale);
  }

  // Training: x^ = BatchNorm(x), y = gamma x^ + beta has four nodes in backward (gradients of
  // gamma, beta, x^ and x), which BatchNormGrad computes together. All of them must be there.
  void FuseScaleIntoNorm(Node& scale, Node& norm) {
    Node* grad = FindNormGrad(norm);
    const Value* normalised = scale.inputs[0];
    if (grad == nullptr) {
      if (NumReaders(normalised) == 1) AppendScale(norm, scale);
      return;
    }
    const auto is_same_layer = [&](const Node& node) {
      return node.layers.front() == scale.layers.front() && node.direction == Direction::kBackward;
    };
    Node* gamma_grad = ReaderWith<ops::SumToAxes>(normalised, is_same_layer);
    if (gamma_grad == nullptr || gamma_grad->inputs.size() != 2 || NumReaders(normalised) != 2)
      return;
    Value* dy = gamma_grad->inputs[0];
    Node* data_grad = ReaderWith<ops::ScaleShift>(dy, is_same_layer);
    Node* beta_grad = ReaderWith<ops::SumToAxes>(
        dy, [&](const Node& node) { return is_same_layer(node) && node.inputs.size() == 1; });
    const bool has_beta = scale.inputs.size() > 2;
    if (data_grad == nullptr || has_beta != (beta_grad != nullptr)) return;
    Value* dx_hat = data_grad->outputs[0];
    if (grad->inputs[3] != dx_hat || NumReaders(dx_hat) != 1 || !SameStorage(*dy, *dx_hat)) return;
    grad->inputs[3] = dy;
    AppendInput(*grad, scale.inputs[1]);
    AppendGradOutput(*grad, *gamma_grad);
    if (beta_grad != nullptr) AppendGradOutput(*grad, *beta_grad);
    AddLayers(*grad, *gamma_grad);
    for (Node* node : {gamma_grad, beta_grad, data_grad}) {
      if (node != nullptr) erased_.push_back(node);
    }
    AppendScale(norm, scale);
  }

  // A residual block's end: what normalisation makes is added to what came round it.
  void FuseSum(Node& sum) {
    const ops::EltwiseSum op = *sum.op.As<ops::EltwiseSum>();
    const auto is_one = [](float coefficient) { return coefficient == 1; };
    if (sum.inputs.size() != 2 ||
        !std::all_of(op.coefficients.begin(), op.coefficients.end(), is_one)) {
      return;
    }
    // The later one of two: what it adds is there when it runs.
    const int last = StepOf(sum.inputs[1]) > StepOf(sum.inputs[0]) ? 1 : 0;
    const Value* normalised = sum.inputs[last];
    Value* residual = sum.inputs[1 - last];
    if (normalised->is_kept || NumReaders(normalised) != 1 ||
        !SameStorage(*normalised, *residual) || !SameStorage(*normalised, *sum.outputs[0])) {
      return;
    }
    if (Node* inference = WriterWith<ops::BatchNormInference>(normalised)) {
      FuseSumInto<ops::BatchNormInference>(sum, *inference, 6, residual);
    } else if (Node* norm = WriterWith<ops::BatchNorm>(normalised)) {
      if (norm->op.As<ops::BatchNorm>()->has_relu || !FuseSumGrad(sum, *norm)) return;
      FuseSumInto<ops::BatchNorm>(sum, *norm, 3, residual);
    }
  }

  // -1 for what no node writes.
  int64_t StepOf(const Value* value) const {
    const auto writer = writers_.find(value);
    return writer == writers_.end() ? -1 : static_cast<int64_t>(steps_.at(writer->second));
  }

  template <typename T>
  void FuseSumInto(Node& sum, Node& norm, size_t operand, Value* residual) {
    T op = *norm.op.As<T>();
    if (op.has_relu) return;
    op.has_relu = sum.op.As<ops::EltwiseSum>()->has_relu;
    norm.op = op;
    SetInput(norm, operand, residual);
    Absorb(norm, sum);
  }

  // Without ReLU the sum's gradient is that of both operands already. With it, one node cuts off
  // what both get: BatchNormGrad does that itself and hands it on, if it runs before its readers.
  // Not on a CPU, where ReluGrad works in place: as many bytes would move, and one tensor more be
  // alive.
  bool FuseSumGrad(const Node& sum, const Node& norm) {
    Node* grad = FindNormGrad(norm);
    const bool is_cpu = graph_->options.device->kind() == DeviceKind::kCpu;
    if (is_cpu || grad == nullptr || !sum.op.As<ops::EltwiseSum>()->has_relu) return true;
    Value* y = sum.outputs[0];
    Node* relu_grad = ReaderWith<ops::ReluGrad>(y, [&](const Node& node) {
      return node.inputs[0] == y && node.outputs[0] == grad->inputs[3];
    });
    if (relu_grad == nullptr) return false;
    Value *dy = relu_grad->inputs[1], *cut_off = relu_grad->outputs[0];
    const bool runs_first =
        std::all_of(readers_.at(cut_off).begin(), readers_.at(cut_off).end(),
                    [&](const Node* node) { return steps_.at(node) >= steps_.at(grad); });
    if (!runs_first || cut_off->is_kept || !SameStorage(*dy, *cut_off)) return false;
    ops::BatchNormGrad op = *grad->op.As<ops::BatchNormGrad>();
    op.has_relu = true;
    grad->op = op;
    grad->inputs[3] = dy;
    SetInput(*grad, 5, y);
    while (grad->outputs.size() < 3) {
      grad->outputs.push_back(nullptr);
      grad->made.push_back(grad->made.front());
    }
    AppendGradOutput(*grad, *relu_grad);
    AddLayers(*grad, *relu_grad);
    erased_.push_back(relu_grad);
    return true;
  }

  static void AppendGradOutput(Node& into, const Node& from) {
    const size_t index = into.outputs.size();
    into.outputs.push_back(from.outputs[0]);
    into.made.push_back(from.outputs[0]->desc.dtype);
    into.accumulate_mask |= (from.accumulate_mask & 1u) << index;
    into.accumulate_on_request_mask |= (from.accumulate_on_request_mask & 1u) << index;
  }

  Graph* graph_ = nullptr;
  std::map<const Value*, std::vector<Node*>> readers_;
  std::map<const Value*, Node*> writers_;
  std::map<const Node*, size_t> steps_;  // places in the schedule
  std::vector<Node*> erased_;
};

std::unique_ptr<Pass> MakeFuseEpilogues() {
  return std::make_unique<FuseEpilogues>();
}

}  // namespace caffe::passes
