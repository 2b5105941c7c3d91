#include "caffe/ops/fake_quantize.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/random.hpp"
#include "caffe/passes/fuse_epilogues.hpp"
#include "caffe/passes/pass.hpp"
#include "caffe/passes/scale_groups.hpp"

namespace caffe::passes {
namespace {

bool IsNormOrScale(const Node& node) {
  const auto* scale = node.op.As<ops::ScaleShift>();
  return node.op.As<ops::BatchNorm>() != nullptr ||
         node.op.As<ops::BatchNormInference>() != nullptr ||
         (scale != nullptr && scale->is_per_channel() && node.inputs[1]->kind == ValueKind::kParam);
}

bool IsReluOrLimit(const Node& node) {
  const std::optional<ops::Pointwise> entry = EntryOf(node);
  return entry && entry->kind != ops::Pointwise::Kind::kSwish;
}

}  // namespace

// After this pass layers of precision FAKE_INT8 read values that are rounded as in a plan of
// precision INT8, in training and in testing: convolutions and matrix products round their weights
// and data; sums and average pooling round their data. It decides from the forward nodes what
// quantize later decides from fused ones: a value is rounded if that plan stores it in 8 bits or
// casts it. Rounding weights before normalization is folded into them is the same as rounding them
// afterwards, because each output channel has its own scale. Gradients pass through;
// lower-gradients cuts off those of clipped data.
class FakeQuantize final : public Pass {
 public:
  std::string_view name() const override { return "fake-quantize"; }

  void Run(Graph& graph) override {
    const auto is_rounded = [](const LayerCall& call) { return call.types.fakes_8_bits; };
    if (graph.options.ranges == nullptr || std::ranges::none_of(graph.calls, is_rounded)) return;
    graph_ = &graph;
    readers_ = Readers(graph);
    writers_ = Writers(graph);
    groups_.emplace(graph);
    made_.clear(), wanted_.clear(), products_.clear(), unmeasured_.clear(), steps_.clear();
    any_is_measured_ = false;
    for (Node* node : graph.ScheduledNodes()) {
      steps_.emplace(node->outputs.empty() ? nullptr : node->outputs[0].value, steps_.size());
      Choose(*node);
    }
    RequireRanges();
    for (Node* product : products_) RoundWeights(*product);
    for (const auto& [value, calls] : wanted_) RoundData(*value, calls);
  }

 private:
  // State of a value in an 8-bit plan: the sums of a product, to which an addition can still be
  // fused; the result of an epilogue, to which ReLUs and clips can be fused; or 8-bit numbers.
  enum class Made { kSums, kEpilogue, kNumbers };

  const LayerCall& CallOf(const Node& node) const { return graph_->calls[node.layers.front()]; }

  void Choose(Node& node) {
    if (node.outputs.empty() || node.outputs[0] == nullptr || node.inputs.empty()) return;
    if (node.op.As<ops::Dropout>() != nullptr) groups_->Join(node.outputs[0], node.inputs[0]);
    if (IsReluOrLimit(node) || IsNormOrScale(node)) return Follow(node);
    if (!CallOf(node).types.fakes_8_bits) return;
    if (IsProduct(node.op)) {
      ChooseProduct(node);
    } else if (PassesNumbers(node.op)) {
      ChoosePasser(node);
    } else if (MixesScales(node.op)) {
      if (!ChooseAddition(node)) ChooseMixer(node);
    }
  }

  void ChooseProduct(Node& node) {
    if (!HasWeights(node)) return ChooseProductOfData(node);
    const LayerParameter& layer = CallOf(node).layer->param();
    if (layer.parallel() == LayerParameter::SPLIT_OUTPUT && graph_->options.exchange != nullptr) {
      throw Unsupported(StrCat(PlaceOf(layer),
                               ": has precision FAKE_INT8 and parallel SPLIT_OUTPUT, which do not "
                               "go together yet; leave one of them out"));
    }
    Value* x = node.inputs[0];
    if (!groups_->RangeOf(x)) {
      unmeasured_.emplace_back(&node, x);
      return;
    }
    Want(*x, node);
    products_.push_back(&node);
    made_[node.outputs[0]] = Made::kSums;
  }

  // True if the second factor is weights: a parameter, or a blob that is a view of one.
  bool HasWeights(const Node& product) const {
    const auto* gemm = product.op.As<ops::Gemm>();
    if (product.op.As<ops::BatchedGemm>() != nullptr || (gemm != nullptr && gemm->transpose_a))
      return false;
    const Value* weights = WeightsBelow(product.inputs[1], [this](const Value* value) {
      const auto writer = writers_.find(value);
      return writer == writers_.end() ? nullptr : writer->second;
    });
    return weights != nullptr && weights->kind == ValueKind::kParam;
  }

  // An 8-bit plan reads both factors with ranges of their own, and fuses nothing into the product.
  void ChooseProductOfData(Node& node) {
    const std::vector<Value*>& blobs = CallOf(node).bottoms;
    const std::span factors(node.inputs.data(), 2);
    const bool are_blobs = std::ranges::all_of(factors, [&](const Operand& factor) {
      return std::ranges::find(blobs, factor.value) != blobs.end();
    });
    if (!are_blobs || node.inputs.size() > 2) return;
    for (const Operand& factor : factors) {
      if (groups_->RangeOf(factor)) continue;
      unmeasured_.emplace_back(&node, factor.value);
      return;
    }
    for (const Operand& factor : factors) Want(*factor.value, node);
    groups_->MakeSigned(factors[1]);
    any_is_measured_ = true;
    made_[node.outputs[0]] = Made::kNumbers;
  }

  // Fuses a node into an epilogue if the value before it has no other reader.
  void Follow(const Node& node) {
    const Value* x = node.inputs[0];
    const auto made = made_.find(x);
    if (made == made_.end() || made->second == Made::kNumbers || !HasOneReader(x)) return;
    const bool is_epilogue = IsReluOrLimit(node);
    if (!is_epilogue && made->second != Made::kSums) return;
    made_[node.outputs[0]] = is_epilogue ? Made::kEpilogue : Made::kSums;
  }

  void ChoosePasser(const Node& node) {
    if (!AllAreNumbers(node)) return;
    for (const Operand& input : node.inputs) groups_->Join(input.value, node.outputs[0]);
    made_[node.outputs[0]] = Made::kNumbers;
  }

  // In a residual block, the later product's epilogue computes the sum.
  bool ChooseAddition(const Node& node) {
    const auto* sum = node.op.As<ops::EltwiseSum>();
    const bool is_plain =
        sum != nullptr && node.inputs.size() == 2 &&
        std::ranges::all_of(sum->coefficients, [](float factor) { return factor == 1; });
    if (!is_plain) return false;
    const size_t last = StepOf(node.inputs[1]) > StepOf(node.inputs[0]) ? 1 : 0;
    Value *computed = node.inputs[last], *residual = node.inputs[1 - last];
    const auto made = made_.find(computed);
    if (made == made_.end() || made->second != Made::kSums || !HasOneReader(computed)) return false;
    if (IsStored(residual)) Want(*residual, node);
    made_[node.outputs[0]] = Made::kEpilogue;
    return true;
  }

  void ChooseMixer(const Node& node) {
    if (!AllAreNumbers(node) || !groups_->RangeOf(node.outputs[0])) return;
    for (const Operand& input : node.inputs) Want(*input.value, node);
    made_[node.outputs[0]] =
        node.op.As<ops::EltwiseSum>() != nullptr ? Made::kEpilogue : Made::kNumbers;
  }

  bool AllAreNumbers(const Node& node) const {
    return std::ranges::all_of(node.inputs, [this](const Operand& input) {
      return input != nullptr && (IsStored(input) || wanted_.count(input.value) > 0);
    });
  }

  // True if an 8-bit plan may store the value in 8 bits.
  bool IsStored(const Value* value) const {
    return made_.count(value) > 0 && !IsOutput(value) && groups_->RangeOf(value).has_value();
  }

  // True if nothing reads the value. Not is_kept, which a keep-all plan sets for every value.
  bool IsOutput(const Value* value) const { return readers_.count(value) == 0; }
  bool HasOneReader(const Value* value) const {
    const auto found = readers_.find(value);
    return found != readers_.end() && found->second.size() == 1;
  }
  size_t StepOf(const Value* value) const {
    const auto found = steps_.find(value);
    return found == steps_.end() ? 0 : found->second + 1;
  }

  // Dropout only passes numbers on, so values are rounded before it scales them.
  void Want(Value& value, const Node& reader) {
    Value* rounded = &value;
    int call = reader.layers.front();
    for (auto writer = writers_.find(rounded); writer != writers_.end();
         writer = writers_.find(rounded)) {
      if (writer->second->op.As<ops::Dropout>() == nullptr) break;
      call = writer->second->layers.front();
      rounded = writer->second->inputs[0];
    }
    wanted_[rounded].insert(call);
  }

  // A file without any range of the values that are read belongs to another net. A layer that
  // requests 8 bits itself must get them.
  void RequireRanges() const {
    const BlobRanges& ranges = *graph_->options.ranges;
    for (const auto& [node, value] : unmeasured_) {
      const LayerParameter& layer = CallOf(*node).layer->param();
      Require(!layer.has_precision(), PlaceOf(layer), ": has precision ",
              Precision_Name(layer.precision()), ", but ", WhyNoRange(*graph_, *value),
              " (of net '", ranges.net,
              "'): run caffe calibrate on this net, or leave out the layer's precision");
    }
    const bool is_strange = !unmeasured_.empty() && products_.empty() && !any_is_measured_;
    if (is_strange)
      throw InvalidArgument(WhyNoRangeAtAll(*graph_, *unmeasured_.front().second, "FAKE_INT8"));
  }

  void RoundWeights(Node& product) {
    Value& w = *product.inputs[1].value;
    Value*& rounded = RoundedWeights(graph_->calls[product.layers.front()], w);
    if (rounded == nullptr) {
      const auto* gemm = product.op.As<ops::Gemm>();
      ops::FakeQuantizeRows op{w.desc.shape[0]};
      if (gemm != nullptr) op = {gemm->columns, gemm->transpose_b ? 1 : gemm->columns};
      rounded = &NewValue(w, product.layers.front());
      graph_->InsertBefore(product, op, {&w}, {rounded});
    }
    product.inputs[1].value = rounded;
  }

  // Where a layer finds the weights, which are a parameter or a blob. Rounding clips none of them.
  static Value*& RoundedWeights(LayerCall& call, const Value& w) {
    const auto place = std::ranges::find(call.param_values, &w);
    if (place != call.param_values.end())
      return call.rounded_params[static_cast<int>(place - call.param_values.begin())];
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const auto bottom = std::ranges::find(call.bottoms, &w) - call.bottoms.begin();
    const LayerCall::Rounded unclipped{nullptr, ops::FakeQuantizeGrad({1, -kInfinity, kInfinity})};
    return call.rounded_bottoms.insert({static_cast<int>(bottom), unclipped}).first->second.value;
  }

  // An 8-bit plan stores a product's result in 8 bits for all readers, and casts other values for
  // each reader that asks.
  void RoundData(Value& x, const std::set<int>& asking) {
    const bool is_for_all = made_.count(&x) > 0;
    TensorDesc numbers;
    groups_->Quantise(&x, &numbers);
    ops::QuantizedRange range{numbers.scale};
    if (numbers.dtype == DType::kUInt8) range.lowest = 0, range.highest = 255;
    std::map<int, Value*> rounded;  // by layer in a keep-all plan, which may be run in parts
    for (Node* reader : readers_[&x]) {
      const int index = reader->layers.front();
      if (!is_for_all && asking.count(index) == 0) continue;
      Value*& y = rounded[graph_->options.keep_all ? index : -1];
      if (y == nullptr) {
        y = &NewValue(x, x.layer);
        graph_->InsertBefore(*reader, ops::FakeQuantize(range), {&x}, {y});
      }
      for (Operand& input : reader->inputs) {
        if (input == &x) input.value = y;
      }
      LayerCall& call = graph_->calls[index];
      for (size_t i = 0; i < call.bottoms.size(); ++i) {
        if (call.bottoms[i] == &x)
          call.rounded_bottoms.insert({static_cast<int>(i), {y, ops::FakeQuantizeGrad(range)}});
      }
    }
  }

  Value& NewValue(const Value& of, int layer) {
    Value& value = graph_->NewValue(of.name + ":fake_int8", of.desc.shape, of.desc.dtype,
                                    ValueKind::kActivation);
    value.layer = layer;
    value.at_least_float = of.at_least_float;
    return value;
  }

  // Ordered by id instead of address, so that equal nets get equal plans.
  struct ById {
    bool operator()(const Value* a, const Value* b) const { return a->id < b->id; }
  };

  Graph* graph_ = nullptr;
  std::map<const Value*, std::vector<Node*>> readers_;
  std::map<const Value*, Node*> writers_;
  std::optional<ScaleGroups> groups_;
  std::map<const Value*, Made> made_;
  std::map<Value*, std::set<int>, ById> wanted_;  // data to be rounded -> requesting calls
  std::vector<Node*> products_;
  std::vector<std::pair<const Node*, const Value*>> unmeasured_;  // products without a range
  std::map<const Value*, size_t> steps_;                          // by result
  bool any_is_measured_ = false;  // a product of two factors of data has ranges
};

std::unique_ptr<Pass> MakeFakeQuantize() {
  return std::make_unique<FakeQuantize>();
}

}  // namespace caffe::passes
