#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <typeindex>

#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/fold.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/int8.hpp"
#include "caffe/ops/pool.hpp"
#include "caffe/passes/fuse_epilogues.hpp"
#include "caffe/passes/pass.hpp"
#include "caffe/passes/scale_groups.hpp"

namespace caffe::passes {
namespace {

constexpr Signature kOf8Bits = {DType::kInt8, DType::kFloat};
// Ops that copy bytes of any type; they need no 8-bit kernel.
bool MovesBytes(const Op& op) {
  return PassesNumbers(op) && op.As<ops::MaxPool>() == nullptr;
}

// True for chosen products whose factors are both data.
bool MultipliesData(const Op& op) {
  return op.As<ops::BatchedGemm>() != nullptr;
}

// The op of a product of two factors of data; nothing if it does more than that.
std::optional<Op> PairsOf(const Node& node) {
  const auto* gemm = node.op.As<ops::Gemm>();
  if (gemm == nullptr) return node.op;
  if (!gemm->epilogue.empty() || node.inputs.size() > 2) return std::nullopt;
  return ops::BatchedGemm{.rows = gemm->rows,
                          .columns = gemm->columns,
                          .inner = gemm->inner,
                          .transpose_a = gemm->transpose_a,
                          .transpose_b = gemm->transpose_b};
}

// True if the reader, once chosen, reads the value as numbers: not if the value is its weights.
bool ReadsNumbers(const Node& reader, const Value* value) {
  if (!IsProduct(reader.op) || reader.inputs[0] == value) return true;
  if (MultipliesData(reader.op)) return true;
  const int added = ops::AddedOperand(*reader.op.epilogue());
  return added >= 0 && reader.inputs[static_cast<size_t>(added)] == value;
}

}  // namespace

// After this pass convolutions and matrix products of layers with precision INT8 read 8-bit
// numbers, and so do pooling, sums, concatenations, slices and permutations between them, with the
// ranges of a calibration. Their results are stored in 8 bits if another one of them reads them;
// elsewhere Casts convert between numbers and floats. In a keep-all plan, in which blobs belong to
// the caller, only the products compute in 8 bits. It follows the passes that fold and fuse, so
// that a product's result is that of its epilogue, and fuses clips (ReLU6) that float kernels leave
// to separate nodes. A layer that stays float records why.
class Quantize final : public Pass {
 public:
  std::string_view name() const override { return "quantize"; }

  void Run(Graph& graph) override {
    if (graph.options.ranges == nullptr) return;
    graph_ = &graph;
    groups_.emplace(graph, HasUnsigned());
    chosen_.clear();
    unmeasured_.clear();
    any_is_measured_ = false;
    casts_.clear();
    Choose();
    RequireRanges();
    DropPassersThatNobodyNeeds();
    FindStored();
    for (Node* node : graph.ScheduledNodes()) Rewrite(*node);
  }

 private:
  void Choose() {
    fusion_.emplace(*graph_);
    fusion_->Begin("quantize");
    for (Node* node : fusion_->nodes()) {
      if (node->direction != Direction::kForward || fusion_->IsErased(node)) continue;
      const LayerCall& call = graph_->calls[node->layers.front()];
      if (!call.types.in_8_bits) continue;
      const std::string why = IsProduct(node->op) ? WhyNotProduct(*node) : WhyNotBetween(*node);
      if (why.empty()) {
        Take(*node);
      } else if (SaysWhy(*node)) {
        node->precision_note = StrCat("float instead of int8: ", why);
      }
    }
    fusion_->Finish();
    readers_ = Readers(*graph_);
  }

  void Take(Node& node) {
    chosen_.insert(&node);
    if (PassesNumbers(node.op)) {
      for (const Operand& input : node.inputs) groups_->Join(input.value, node.outputs[0]);
    }
    if (!MovesBytes(node.op)) node.signature = kOf8Bits;
    if (MultipliesData(node.op)) {
      groups_->MakeSigned(node.inputs[1]);
    } else if (IsProduct(node.op)) {
      node.inputs[1].value = Weights(node);
      FuseActivations(node);
    }
  }

  // No reason is given for steps that are not a layer's computation.
  static bool SaysWhy(const Node& node) {
    return !node.inputs.empty() && !node.op.is_view() && node.op.As<ops::HostCall>() == nullptr &&
           node.op.As<ops::FoldChannels>() == nullptr;
  }

  const std::vector<KernelCandidate>& Candidates(std::type_index op) const {
    return KernelRegistry::Get().Candidates(graph_->options.device->kind(), op);
  }

  // True if all kernels of the device that multiply 8-bit numbers read unsigned ones, too.
  bool HasUnsigned() const {
    const std::type_index products[] = {typeid(ops::Conv), typeid(ops::Gemm),
                                        typeid(ops::BatchedGemm)};
    for (const std::type_index product : products) {
      for (const KernelCandidate& candidate : Candidates(product)) {
        if (candidate.Serves(kOf8Bits) && !candidate.traits.takes_unsigned) return false;
      }
    }
    return true;
  }

  // Why no kernel computes the node in 8 bits; empty if one does.
  std::string WhyNoKernel(const Node& node) const {
    std::string why;
    for (const KernelCandidate& candidate : Candidates(node.op.type())) {
      const bool is_fast = candidate.rank < KernelRank::kSlow;
      if (!candidate.Serves(kOf8Bits) || !(is_fast || graph_->options.for_any_processor)) continue;
      std::string reason = WhyNot(candidate, node);
      if (reason.empty()) return "";
      if (why.empty()) why = std::move(reason);
    }
    return why.empty() ? NoKernel(node) : why;
  }

  std::string WhyNot(const KernelCandidate& candidate, const Node& node) const {
    if (candidate.traits.why_not == nullptr) return "";
    std::vector<OperandDesc> inputs;
    for (const Operand& input : node.inputs) {
      OperandDesc& desc = inputs.emplace_back();
      desc.present = input != nullptr;
      if (input != nullptr) static_cast<TensorDesc&>(desc) = input->desc;
    }
    return candidate.traits.why_not(node.op, inputs, *graph_->options.device);
  }

  std::string NoKernel(const Node& node) const {
    const DeviceKind device = graph_->options.device->kind();
    if (device == DeviceKind::kCpu && IsProduct(node.op)) {
      return "this processor has no instructions for products of 8-bit numbers (AVX-512 VNNI, AVX "
             "VNNI, AMX), without which they are slower than those of floats";
    }
    return StrCat("there is no kernel for ", node.op.name(), " of 8-bit numbers on ", Name(device));
  }

  std::string WhyNotProduct(Node& node) {
    const Operand &x = node.inputs[0], &w = node.inputs[1];
    const bool is_float = node.signature == Signature{DType::kFloat, DType::kFloat} &&
                          x->desc.dtype == DType::kFloat &&
                          node.outputs[0]->desc.dtype == DType::kFloat;
    if (!is_float) return StrCat("its types are not float but ", Name(node.signature.data));
    const auto* gemm = node.op.As<ops::Gemm>();
    if (Weights(node) == nullptr) return WhyNotPairs(node);
    if (w->desc.dtype != DType::kFloat || (w.dtype != DType::kFloat))
      return "its weights are not floats";
    const int64_t summands = gemm != nullptr ? gemm->inner : w->desc.shape.count(1);
    if (summands > ops::kMostSummands)
      return StrCat("its sums of ", summands, " products do not fit 32 bits");
    if (!groups_->RangeOf(x)) {
      unmeasured_.emplace_back(&node, x.value);
      return NoRange(*x.value);
    }
    any_is_measured_ = true;
    if (std::string why = WhyNoKernel(node); !why.empty()) return why;
    const Signature of_float = std::exchange(node.signature, kOf8Bits);
    const bool is_served = fusion_->Serves(node, *node.op.epilogue());
    node.signature = of_float;
    return is_served ? "" : "no kernel of 8-bit numbers applies its epilogue";
  }

  // The weights that a product's second factor is; null if that factor is data.
  Value* Weights(const Node& product) const {
    const auto* gemm = product.op.As<ops::Gemm>();
    if (MultipliesData(product.op) || (gemm != nullptr && gemm->transpose_a)) return nullptr;
    return WeightsBelow(product.inputs[1],
                        [this](const Value* value) { return fusion_->WriterOf(value); });
  }

  // For a product whose factors are both data: why it does not compute in 8 bits. If it does, this
  // sets its op.
  std::string WhyNotPairs(Node& node) {
    std::optional<Op> pairs = PairsOf(node);
    const std::vector<Value*>& blobs = graph_->calls[node.layers.front()].bottoms;
    const std::span factors(node.inputs.data(), 2);
    const bool are_blobs = std::ranges::all_of(factors, [&](const Operand& factor) {
      return std::ranges::find(blobs, factor.value) != blobs.end();
    });
    if (!are_blobs || !pairs) return "its second factor is not weights";
    for (const Operand& factor : factors) {
      if (factor->desc.dtype != DType::kFloat || factor.dtype != DType::kFloat)
        return "one of its factors is not float";
      if (groups_->RangeOf(factor)) continue;
      unmeasured_.emplace_back(&node, factor.value);
      return NoRange(*factor.value);
    }
    any_is_measured_ = true;
    std::swap(node.op, *pairs);
    std::string why = WhyNoKernel(node);
    if (!why.empty()) std::swap(node.op, *pairs);
    return why;
  }

  std::string NoRange(const Value& value) const { return WhyNoRange(*graph_, value); }

  // For ops between products: why they do not compute in 8 bits; empty if they do.
  std::string WhyNotBetween(const Node& node) const {
    if (!MovesBytes(node.op)) {
      const bool may_be_able = PassesNumbers(node.op) || MixesScales(node.op);
      std::string why = may_be_able ? WhyNoKernel(node) : NoKernel(node);
      if (!why.empty()) return why;
    }
    if (node.outputs.size() > 1 && node.outputs[1] != nullptr) return "it makes a mask";
    for (const Operand& input : node.inputs) {
      if (!CanBeStored(input) && !IsCast(input)) return StrCat("'", input->name, "' is float");
    }
    const Value& y = *node.outputs[0];
    if (y.desc.dtype != DType::kFloat) return "its types are not float";
    if (PassesNumbers(node.op)) {
      return IsFree(y) ? "" : StrCat("'", y.name, "' is read from outside");
    }
    return groups_->RangeOf(&y) ? "" : NoRange(y);
  }

  // True if the value is invisible outside the plan.
  bool IsFree(const Value& value) const {
    return !graph_->options.keep_all && !value.is_kept && !value.must_be_plain &&
           value.kind == ValueKind::kActivation;
  }

  // True if an 8-bit step computes the value, which may then stay in 8 bits.
  bool CanBeStored(const Value* value) const {
    if (value == nullptr || !IsFree(*value) || !groups_->RangeOf(value)) return false;
    const Node* writer = fusion_->WriterOf(value);
    return writer != nullptr && chosen_.count(writer) > 0 && writer->outputs[0].value == value;
  }

  // True if a product reads the value in 8 bits anyway, whatever its producer.
  bool IsCast(const Value* value) const {
    if (value == nullptr || graph_->options.keep_all || !groups_->RangeOf(value)) return false;
    return std::ranges::any_of(fusion_->ReadersOf(value), [&](const Node* reader) {
      return chosen_.count(reader) > 0 && IsProduct(reader->op) &&
             (reader->inputs[0] == value || MultipliesData(reader->op));
    });
  }

  // Kernels of 8-bit data also fuse clips and additions that float kernels leave to separate steps.
  void FuseActivations(Node& product) {
    if (graph_->options.keep_all) return;
    while (Node* reader = fusion_->OnlyReaderOf(product.outputs[0])) {
      if (!FuseSum(*fusion_, *reader) && !FuseActivation(*fusion_, *reader)) return;
      ++graph_->fusion_reports.back().fired;
    }
  }

  // A layer that requests 8 bits itself must get them. A file without any range of the values that
  // are read belongs to another net.
  void RequireRanges() const {
    for (const auto& [node, value] : unmeasured_) {
      const LayerParameter& layer = graph_->calls[node->layers.front()].layer->param();
      Require(!layer.has_precision(), PlaceOf(layer), ": has precision INT8, but ", NoRange(*value),
              " (of net '", graph_->options.ranges->net,
              "'): run caffe calibrate on this net, or leave out the layer's precision");
    }
    const bool is_strange = !unmeasured_.empty() && !any_is_measured_;
    if (is_strange)
      throw InvalidArgument(WhyNoRangeAtAll(*graph_, *unmeasured_.front().second, "INT8"));
  }

  bool HasChosenReader(const Value* value) const {
    const auto found = readers_.find(value);
    if (found == readers_.end()) return false;
    return std::ranges::any_of(found->second, [&](const Node* reader) {
      return chosen_.count(reader) > 0 && ReadsNumbers(*reader, value);
    });
  }

  void DropPassersThatNobodyNeeds() {
    std::vector<Node*> nodes = graph_->ScheduledNodes();
    std::reverse(nodes.begin(), nodes.end());
    for (Node* node : nodes) {
      if (chosen_.count(node) == 0 || !PassesNumbers(node->op) || HasChosenReader(node->outputs[0]))
        continue;
      chosen_.erase(node);
      node->signature = {DType::kFloat, DType::kFloat};
      if (SaysWhy(*node)) node->precision_note = "float instead of int8: what reads it is float";
    }
  }

  void FindStored() {
    stored_.clear();
    for (const Node* node : graph_->ScheduledNodes()) {
      if (chosen_.count(node) == 0) continue;
      Value* y = node->outputs[0];
      const bool is_stored = IsFree(*y) && groups_->RangeOf(y) && HasChosenReader(y);
      if (is_stored) stored_.insert(y);
    }
    for (Value* value : stored_) groups_->Quantise(value, &value->desc);
  }

  void Rewrite(Node& node) {
    const bool is_chosen = chosen_.count(&node) > 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Operand& input = node.inputs[i];
      if (input == nullptr) continue;
      const bool needs_numbers = !IsProduct(node.op) || i == 0 || MultipliesData(node.op);
      const bool reads_number = is_chosen && needs_numbers;
      const bool is_added = is_chosen && !needs_numbers &&
                            static_cast<int>(i) == ops::AddedOperand(*node.op.epilogue());
      if (stored_.count(input) > 0) {
        if (!reads_number && !is_added) {
          // Casts to float; another conversion then makes the node's type.
          input.value = FindOrInsertCast(node, *input.value, false);
          continue;
        }
      } else if (reads_number) {
        input.value = FindOrInsertCast(node, *input.value, true);
      } else {
        continue;
      }
      input.dtype = input->desc.dtype;
    }
    for (Result& output : node.outputs) {
      if (output != nullptr && stored_.count(output) > 0) output.dtype = output->desc.dtype;
    }
  }

  // One cast for all readers; in a keep-all plan, in which blobs may be changed between layers, one
  // for each layer.
  Value* FindOrInsertCast(const Node& reader, Value& from, bool to_numbers) {
    const int layer = graph_->options.keep_all ? reader.layers.front() : -1;
    Value*& cast = casts_[{from.id, to_numbers, layer}];
    if (cast == nullptr) {
      TensorDesc desc;
      if (to_numbers) groups_->Quantise(&from, &desc);
      cast = &graph_->NewValue(StrCat(from.name, ":", Name(desc.dtype)), from.desc.shape,
                               desc.dtype, ValueKind::kActivation);
      cast->desc.scale = desc.scale;
      cast->layer = from.layer;
      graph_->InsertBefore(reader, ops::Cast{}, {&from}, {cast});
    }
    return cast;
  }

  Graph* graph_ = nullptr;
  std::optional<Fusion> fusion_;
  std::optional<ScaleGroups> groups_;
  std::set<const Node*> chosen_;  // nodes that are computed in 8 bits
  std::set<Value*> stored_;       // results of chosen nodes that are stored in 8 bits
  std::vector<std::pair<const Node*, const Value*>> unmeasured_;  // products without a range
  bool any_is_measured_ = false;                                  // a product has one
  std::map<const Value*, std::vector<Node*>> readers_;
  std::map<std::tuple<int, bool, int>, Value*> casts_;
};

std::unique_ptr<Pass> MakeQuantize() {
  return std::make_unique<Quantize>();
}

}  // namespace caffe::passes
