#include <algorithm>

#include "caffe/device/device.hpp"
#include "caffe/experimental/split_exchange.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

// Sizes of a layer: M outputs for N rows of K elements on each of R ranks.
struct SplitSizes {
  int64_t rows = 0, inner = 0, outputs = 0;
};

// Replaces the steps of one layer.
class Splitter {
 public:
  Splitter(Graph& graph, int index, const SplitSizes& sizes)
      : graph_(graph),
        index_(index),
        call_(graph.calls[index]),
        ranks_(*graph.options.exchange),
        sizes_(sizes),
        own_(ranks_.Size(sizes.outputs, ranks_.rank)),
        exchange_(std::make_shared<const SplitExchange>(graph.options.exchange, sizes.rows,
                                                        sizes.outputs)) {}

  void Run() {
    std::vector<Node*> forward = OwnSteps(Direction::kForward);
    std::vector<Node*> backward = OwnSteps(Direction::kBackward);
    const Node& product = *forward.front();
    for (size_t i = 0; i < call_.params.size(); ++i)
      weights_.push_back(Part(call_.param_values[i], ValueKind::kParam));
    EmitForward(product);
    if (!backward.empty()) EmitBackward(*backward.front(), backward);
    graph_.Erase(forward);
    graph_.Erase(backward);
  }

 private:
  // The layer's products and sums, without steps that add gradients of several readers.
  std::vector<Node*> OwnSteps(Direction direction) const {
    std::vector<Node*> steps;
    for (Node* node : graph_.ScheduledNodes()) {
      if (node->layers.front() != index_ || node->direction != direction) continue;
      if (node->op.As<ops::Gemm>() != nullptr || node->op.As<ops::SumToAxes>() != nullptr)
        steps.push_back(node);
    }
    return steps;
  }

  void EmitForward(const Node& product) {
    Value *x = product.inputs[0], *y = product.outputs[0];
    xs_ = &NewValue("rows", {ranks_.ranks * sizes_.rows, sizes_.inner}, nullptr);
    ys_ = &NewValue("outputs", {ranks_.ranks * sizes_.rows, own_}, nullptr);
    graph_.InsertBefore(product, Call("gather rows", &SplitExchange::GatherRows), {x}, {xs_});
    std::vector<Value*> inputs = {xs_};
    inputs.insert(inputs.end(), weights_.begin(), weights_.end());
    graph_.InsertBefore(product,
                        ops::Gemm{.rows = ranks_.ranks * sizes_.rows,
                                  .columns = own_,
                                  .inner = sizes_.inner,
                                  .transpose_b = true},
                        inputs, {ys_});
    graph_.InsertBefore(product, Call("exchange outputs", &SplitExchange::ExchangeOutputs), {ys_},
                        {y});
  }

  // Everything comes before `first`, because only the gradient of the top is needed from backward.
  void EmitBackward(const Node& first, const std::vector<Node*>& replaced) {
    Value* dy = graph_.gradients.at(call_.tops[0]);
    const bool learns = std::ranges::count(call_.param_needs_gradient, true) > 0;
    Value& dys = NewValue("outputs.diff", ys_->desc.shape, ys_);
    Value* mean = learns ? &NewValue("outputs.mean_diff", ys_->desc.shape, ys_) : nullptr;
    graph_.InsertBefore(first, Call("exchange gradients", &SplitExchange::ExchangeGradients), {dy},
                        {&dys, mean});
    if (learns) EmitParamGradients(first, mean);
    if (Value* dx = BottomGradient(replaced)) EmitBottomGradient(first, &dys, dx);
  }

  void EmitParamGradients(const Node& first, Value* mean) {
    if (call_.param_needs_gradient[0]) {
      graph_.InsertBefore(first,
                          ops::Gemm{.rows = own_,
                                    .columns = sizes_.inner,
                                    .inner = ranks_.ranks * sizes_.rows,
                                    .transpose_a = true},
                          {mean, xs_}, {Part(call_.param_grads[0], ValueKind::kParamGrad)});
    }
    if (call_.params.size() > 1 && call_.param_needs_gradient[1]) {
      graph_.InsertBefore(first, ops::SumToAxes{{.axis = 1, .num_axes = 1}}, {mean},
                          {Part(call_.param_grads[1], ValueKind::kParamGrad)});
    }
  }

  void EmitBottomGradient(const Node& first, Value* dys, Value* dx) {
    Value& dxs = NewValue("rows.diff", xs_->desc.shape, xs_);
    graph_.InsertBefore(
        first,
        ops::Gemm{.rows = ranks_.ranks * sizes_.rows, .columns = sizes_.inner, .inner = own_},
        {dys, weights_[0]}, {&dxs});
    std::vector<Value*> parts;
    for (int r = 0; r < ranks_.ranks; ++r)
      parts.push_back(&NewValue(StrCat("rows.diff.", r), dx->desc.shape, xs_));
    graph_.InsertBefore(first, Call("scatter rows", &SplitExchange::ScatterRows), {&dxs}, parts);
    graph_.InsertBefore(first, ops::EltwiseSum{}, parts, {dx});  // in rank order
  }

  Value* BottomGradient(const std::vector<Node*>& replaced) const {
    for (const Node* node : replaced) {
      if (node->outputs[0] != nullptr && node->outputs[0]->kind == ValueKind::kActivation)
        return node->outputs[0];
    }
    return nullptr;
  }

  // This rank's rows of a parameter or of its gradient, in the memory of the whole.
  Value* Part(Value* whole, ValueKind kind) {
    const int64_t row = whole->desc.count() / sizes_.outputs;
    const int64_t begin = ranks_.Begin(sizes_.outputs, ranks_.rank);
    Value& part = graph_.NewValue(StrCat(whole->name, "[", begin, ":", begin + own_, "]"),
                                  whole->desc.shape.With(0, own_), whole->desc.dtype, kind);
    part.layer = index_;
    part.owner = whole;
    part.part_offset = begin * row;
    part.gradient_of = whole->gradient_of;
    return &part;
  }

  Value& NewValue(const std::string& name, const Shape& shape, const Value* gradient_of) {
    Value& value = graph_.NewValue(StrCat(call_.layer->name(), "/", name), shape, DType::kFloat,
                                   ValueKind::kActivation);
    value.layer = index_;
    value.gradient_of = gradient_of;
    return value;
  }

  ops::HostCall Call(const char* what,
                     void (SplitExchange::*exchange)(const KernelContext&) const) const {
    return {.what = what, .call = [exchange_ = exchange_, exchange](const KernelContext& ctx) {
              (*exchange_.*exchange)(ctx);
            }};
  }

  Graph& graph_;
  const int index_;
  LayerCall& call_;
  const RankExchange& ranks_;
  const SplitSizes sizes_;
  const int64_t own_;  // number of this rank's outputs
  const std::shared_ptr<const SplitExchange> exchange_;
  std::vector<Value*> weights_;
  Value *xs_ = nullptr, *ys_ = nullptr;
};

}  // namespace

// Splits InnerProduct layers with `parallel: SPLIT_OUTPUT` over the ranks that train together
// (Krizhevsky 2014, arXiv 1404.5997). Each rank has some rows of the weights and computes their
// outputs for the items of all ranks. Inputs and outputs are exchanged instead of gradients of
// weights, which are complete on the rank that computes them.
//
//   xs = gathered rows of x; ys = xs W_r^T + b_r; y = exchanged ys
//   dys = exchanged dy; dW_r = (dys / R)^T xs; db_r = sums of dys / R; dx = sum over r of dys W_r
//
// It follows lower-layers because it replaces steps, and precedes all passes that choose types and
// fuse steps, so that the new steps are treated like others.
class SplitOverRanks final : public Pass {
 public:
  std::string_view name() const override { return "split-over-ranks"; }

  void Run(Graph& graph) override {
    for (size_t i = 0; i < graph.calls.size(); ++i) {
      LayerCall& call = graph.calls[i];
      if (call.layer->param().parallel() != LayerParameter::SPLIT_OUTPUT) continue;
      CallLayer(call.layer->param(), [&] {
        CheckLayer(graph, call);
        if (IsForSeveralRanks(graph)) Split(graph, static_cast<int>(i));
      });
    }
  }

 private:
  static bool IsForSeveralRanks(const Graph& graph) {
    const CompileOptions& options = graph.options;
    return options.exchange != nullptr && options.is_training_phase && options.with_backward;
  }

  static void CheckLayer(const Graph& graph, const LayerCall& call) {
    const LayerParameter& param = call.layer->param();
    Require(call.layer->type() == "InnerProduct",
            "parallel is SPLIT_OUTPUT, which is for InnerProduct layers; leave it out");
    Require(!param.inner_product_param().transpose(),
            "parallel is SPLIT_OUTPUT, and transpose is true; a rank's part of such weights is not "
            "in one piece: leave one of them out");
    for (const Value& value : graph.values()) {
      const auto is_own = [&](const Value* one) {
        return std::ranges::count(call.param_values, one) > 0;
      };
      Require(value.owner == nullptr || (!is_own(&value) && !is_own(value.owner)),
              "parallel is SPLIT_OUTPUT, and the layer shares a parameter with another one; leave "
              "one of them out");
    }
  }

  static SplitSizes SizesOf(const LayerCall& call) {
    const int64_t outputs = call.params[0].shape[0], inner = call.params[0].shape[1];
    return {call.tops[0]->desc.count() / outputs, inner, outputs};
  }

  static void Split(Graph& graph, int index) {
    LayerCall& call = graph.calls[index];
    const RankExchange& exchange = *graph.options.exchange;
    const SplitSizes sizes = SizesOf(call);
    Require(sizes.outputs >= exchange.ranks, "parallel is SPLIT_OUTPUT, but num_output is ",
            sizes.outputs, " for ", exchange.ranks, " ranks; leave parallel out");
    if (graph.options.device->kind() != DeviceKind::kCpu) {
      throw Unsupported(
          "parallel is SPLIT_OUTPUT, which several ranks on GPUs do not know; leave "
          "it out");
    }
    call.is_split = true;
    Splitter(graph, index, sizes).Run();
  }
};

std::unique_ptr<Pass> MakeSplitOverRanks() {
  return std::make_unique<SplitOverRanks>();
}

}  // namespace caffe::passes
