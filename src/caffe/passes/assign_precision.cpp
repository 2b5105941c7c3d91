#include <algorithm>
#include <set>
#include <tuple>

#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

DType AtLeastFloat(DType type) {
  return type == DType::kDouble ? type : DType::kFloat;
}

bool IsHalf(DType type) {
  return SizeOf(type) == 2;
}

// True if the op's arithmetic is never narrower than float.
bool ComputesWide(const Op& op) {
  return op.numeric_rule() == NumericRule::kFloat || op.numeric_rule() == NumericRule::kAsStored;
}

bool IsParam(const Value& value) {
  return value.kind == ValueKind::kParam || value.kind == ValueKind::kParamGrad;
}

// Distance of `to` from the requested type; nothing if `to` cannot represent all its values.
std::optional<int> Distance(DType asked, DType to) {
  if (asked == to) return 0;
  if (to == DType::kFloat && IsHalf(asked)) return 1;
  if (to == DType::kDouble) return 2;
  return std::nullopt;
}

// The requested types of a product: the storage type for operands, unless the math type is narrower
// or double; sums are never narrower than float.
Signature ProductWish(DType storage, DType math) {
  if (storage == DType::kDouble || math == DType::kDouble) return {DType::kDouble, DType::kDouble};
  return {IsHalf(math) ? math : storage, DType::kFloat};
}

std::string TypesOf(const KernelCandidate& candidate) {
  std::string text;
  for (const Signature& signature : candidate.traits.signatures)
    text += StrCat(text.empty() ? "" : ", ", Name(signature.data));
  return StrCat(candidate.name, " (", text, ")");
}

}  // namespace

// After this pass every value has its storage type, every node the signature that it is computed
// in, and every operand the type in which the node sees it; insert-casts then adds the conversions.
// A value is stored in the forward_type or backward_type of its layer. Losses and the scores that
// they read, statistics, indices and master weights are never narrower than float. A node's
// signature is declared by the device's best kernel that meets the layer's types, else the nearest
// wider one.
class AssignPrecision final : public Pass {
 public:
  std::string_view name() const override { return "assign-precision"; }

  void Run(Graph& graph) override {
    FindSideResults(graph);
    KeepLabelsExact(graph);
    KeepScoresWide(graph);
    StoreParameters(graph);
    for (Value& value : graph.values()) {
      if (value.layer >= 0 && !IsParam(value)) value.desc.dtype = StorageType(graph, value);
    }
    // Memory that a user provides later holds the blob's last version, or its gradient.
    for (const auto& [name, value] : graph.external_data) ShareType(*value, *graph.blobs.at(name));
    for (const auto& [name, value] : graph.external_diffs) {
      const auto gradient = graph.blob_grads.find(name);
      if (gradient != graph.blob_grads.end()) ShareType(*value, *gradient->second);
    }
    for (Node* node : graph.ScheduledNodes()) {
      AssignRoles(*node);
      ChooseSignature(graph, *node);
      AssignOperands(graph, *node);
    }
  }

 private:
  // Further results of a node (masks, statistics) keep their type, and are never narrower than
  // float if they are tops.
  void FindSideResults(Graph& graph) {
    side_results_.clear();
    for (LayerCall& call : graph.calls) {
      for (const auto& [name, value] : call.saved) side_results_.insert(value);
    }
    for (Node* node : graph.ScheduledNodes()) {
      if (node->direction != Direction::kForward) continue;
      if (!node->outputs.empty()) side_results_.erase(node->outputs[0]);
      if (node->op.As<ops::HostCall>() == nullptr) {
        for (size_t i = 1; i < node->outputs.size(); ++i)
          if (node->outputs[i] != nullptr) node->outputs[i]->at_least_float = true;
      }
      if (!ComputesWide(node->op)) continue;
      for (Value* output : node->outputs) {
        if (output != nullptr) output->at_least_float = true;
        side_results_.erase(output);
      }
    }
  }

  // Class indexes above 256 are not exact in bfloat16, so labels stay float from their source on,
  // through ops that only move them.
  static void KeepLabelsExact(Graph& graph) {
    std::vector<Node*> nodes = graph.ScheduledNodes();
    std::reverse(nodes.begin(), nodes.end());
    for (Node* node : nodes) {
      if (node->direction != Direction::kForward) continue;
      const Op& op = node->op;
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        if (op.exact_inputs().contains(i) && node->inputs[i] != nullptr) {
          node->inputs[i]->at_least_float = true;
        }
      }
      const bool moves =
          op.is_view() || op.As<ops::SliceOf>() != nullptr || op.As<ops::Concat>() != nullptr;
      if (!moves || node->outputs[0] == nullptr || !node->outputs[0]->at_least_float) continue;
      for (Value* input : node->inputs) input->at_least_float = true;
    }
  }

  // A matrix product's sums are already float. If only ops that compute in float read them (a loss,
  // an accuracy), rounding in between would save nothing. Scores that are rounded to bfloat16 tie,
  // which counts against the label: 0.2 points of CIFAR-10 quick. A layer's own forward_type takes
  // precedence. The gradient of scores has the layer's backward_type.
  void KeepScoresWide(Graph& graph) {
    scores_.clear();
    const auto readers = Readers(graph);
    const auto reads_narrow = [](const Node* reader) {
      return reader->direction == Direction::kForward && !ComputesWide(reader->op);
    };
    for (const Node* node : graph.ScheduledNodes()) {
      if (node->direction != Direction::kForward || !node->op.makes_float() ||
          node->op.numeric_rule() != NumericRule::kMath) {
        continue;
      }
      Value* scores = node->outputs[0];
      if (graph.calls[node->layers.front()].types.has_own_forward || scores->at_least_float)
        continue;
      const auto found = readers.find(scores);
      if (found != readers.end() && std::ranges::any_of(found->second, reads_narrow)) continue;
      scores->at_least_float = true;
      scores_.insert(scores);
    }
  }

  // Layers that share a parameter share its memory, so it has the widest type that they request.
  static void StoreParameters(Graph& graph) {
    for (Value& value : graph.values()) {
      if (IsParam(value)) value.root()->desc.dtype = DType::kFloat;
    }
    for (Value& value : graph.values()) {
      if (!IsParam(value)) continue;
      if (graph.calls[value.layer].types.parameters() == DType::kDouble)
        value.root()->desc.dtype = DType::kDouble;
    }
    for (Value& value : graph.values()) {
      if (IsParam(value)) value.desc.dtype = value.root()->desc.dtype;
    }
  }

  DType StorageType(const Graph& graph, const Value& value) const {
    if (value.desc.dtype == DType::kUInt8) return DType::kUInt8;
    const LayerTypes& types = graph.calls[value.layer].types;
    const bool is_gradient = value.gradient_of != nullptr;
    const DType type = is_gradient ? types.backward : types.forward;
    const bool wide = is_gradient ? value.at_least_float && !scores_.contains(value.gradient_of)
                                  : value.at_least_float;
    return wide ? AtLeastFloat(type) : type;
  }

  // Gives two values that share memory the wider of their types.
  static void ShareType(Value& one, Value& other) {
    if (one.desc.dtype == other.desc.dtype) return;
    const bool is_double = one.desc.dtype == DType::kDouble || other.desc.dtype == DType::kDouble;
    one.desc.dtype = other.desc.dtype = is_double ? DType::kDouble : DType::kFloat;
  }

  void AssignRoles(Node& node) const {
    const NumericRule rule = node.op.numeric_rule();
    if (rule == NumericRule::kAsStored) {
      for (Operand& input : node.inputs) input.role = Role::kExact;
      for (Result& output : node.outputs) output.role = Role::kExact;
      return;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Operand& input = node.inputs[i];
      if (input == nullptr) continue;
      if (node.op.exact_inputs().contains(i) && rule != NumericRule::kFloat) {
        input.role = Role::kExact;
      } else if (rule == NumericRule::kFloat) {
        input.role = Role::kData;  // such kernels have one type for all operands
      } else if (IsParam(*input.value)) {
        const bool is_factor = rule == NumericRule::kMath && input->desc.shape.num_axes() >= 2;
        input.role = is_factor ? Role::kFactor : Role::kParameter;
      } else if (i == 0 && node.op.in_place()) {
        input.role = Role::kData;  // the result's type, even if a forward step saved it
      } else if (rule != NumericRule::kMath && side_results_.contains(input.value)) {
        input.role = Role::kExact;
      }
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Result& output = node.outputs[i];
      if (output == nullptr) continue;
      if (output->kind != ValueKind::kActivation) {
        output.role = Role::kParameter;
      } else if (output->at_least_float && rule != NumericRule::kFloat &&
                 (i == 0 ? node.op.makes_float() : rule == NumericRule::kStorage)) {
        output.role = Role::kExact;
      }
    }
  }

  // Kernels that compute in storage types use one type for all data that they move. An op that
  // reads or writes a value which is never stored in 16 bits (the top of a Softmax, the gradient of
  // one) therefore computes entirely in float.
  static bool MovesWideValues(const Node& node) {
    const auto is_wide = [](const Operand& operand) {
      return operand != nullptr && operand.role == Role::kData &&
             AtLeastFloat(operand->desc.dtype) == operand->desc.dtype && operand->at_least_float;
    };
    return std::ranges::any_of(node.inputs, is_wide) ||
           (!node.outputs.empty() && is_wide(node.outputs[0]));
  }

  static Signature Wish(const Graph& graph, const Node& node) {
    const LayerTypes& types = graph.calls[node.layers.front()].types;
    const bool is_forward = node.direction == Direction::kForward;
    DType storage = is_forward ? types.forward : types.backward;
    switch (node.op.numeric_rule()) {
      case NumericRule::kMath:
        return ProductWish(storage, is_forward ? types.forward_math : types.backward_math);
      case NumericRule::kFloat:
        storage = AtLeastFloat(storage);
        for (const Value* output : node.outputs) {  // all have the type of the master weights
          if (output != nullptr && output->kind == ValueKind::kParamGrad)
            storage = output->desc.dtype;
        }
        break;
      case NumericRule::kAsStored:
        storage = AtLeastFloat(storage);
        break;
      case NumericRule::kStorage:
        if (MovesWideValues(node)) storage = AtLeastFloat(storage);
        break;
    }
    return {storage, AtLeastFloat(storage)};
  }

  // Takes the best rank of kernels, and among its signatures the nearest one.
  static void ChooseSignature(const Graph& graph, Node& node) {
    const Signature wish = Wish(graph, node);
    const DeviceKind device = graph.options.device->kind();
    const auto& candidates = KernelRegistry::Get().Candidates(device, node.op.type());
    std::optional<std::tuple<KernelRank, int>> best;
    const KernelCandidate* chosen = nullptr;
    for (const KernelCandidate& candidate : candidates) {
      for (const Signature& signature : candidate.traits.signatures) {
        const std::optional<int> distance = Distance(wish.data, signature.data);
        if (!distance || !Distance(wish.compute, signature.compute)) continue;
        const std::tuple cost(candidate.rank, *distance);
        if (best && *best <= cost) continue;
        best = cost;
        chosen = &candidate;
        node.signature = signature;
      }
    }
    if (chosen == nullptr) ThrowUnserved(graph, node, wish, candidates);
    node.precision_note.clear();
    if (node.signature.data != wish.data) {
      node.precision_note = StrCat("computes in ", Name(node.signature.data), " instead of ",
                                   Name(wish.data), ", which ", chosen->name, " does not take");
    }
  }

  [[noreturn]] static void ThrowUnserved(const Graph& graph, const Node& node,
                                         const Signature& wish,
                                         const std::vector<KernelCandidate>& candidates) {
    std::string served;
    for (const KernelCandidate& candidate : candidates)
      served += (served.empty() ? "" : ", ") + TypesOf(candidate);
    const Layer& layer = *graph.calls[node.layers.front()].layer;
    throw Unsupported(
        StrCat(PlaceOf(layer.param()), ": no kernel for ", node.op.name(), " in ", Name(wish.data),
               " on ", Name(graph.options.device->kind()),
               served.empty() ? "; this build has none for any type" : "; there are " + served));
  }

  static void AssignOperands(const Graph& graph, Node& node) {
    const LayerTypes& types = graph.calls[node.layers.front()].types;
    for (Operand& input : node.inputs) {
      input.dtype = input == nullptr ? node.signature.data : InputType(input, node, types);
    }
    for (Result& output : node.outputs) {
      const bool is_data =
          output == nullptr || (output.role == Role::kData && output->desc.dtype != DType::kUInt8);
      output.dtype = is_data ? node.signature.data : output->desc.dtype;
    }
    // Copies and fills work in the stored type of their result.
    if (!node.op.is_view() && !node.inputs.empty()) return;
    for (Result& output : node.outputs) {
      if (output != nullptr) output.dtype = output->desc.dtype;
    }
    if (node.op.is_view() && node.outputs[0] != nullptr)
      node.inputs[0].dtype = node.outputs[0].dtype;
  }

  static DType InputType(const Operand& input, const Node& node, const LayerTypes& types) {
    const DType stored = input->desc.dtype;
    if (stored == DType::kUInt8) return stored;
    switch (input.role) {
      case Role::kData:
      case Role::kFactor:
        return node.signature.data;
      case Role::kParameter:
        return types.parameters();  // the stored type may be wider because of another layer
      case Role::kExact:
        break;
    }
    return stored;
  }

  std::set<const Value*> side_results_;
  std::set<const Value*> scores_;  // widened by KeepScoresWide()
};

std::unique_ptr<Pass> MakeAssignPrecision() {
  return std::make_unique<AssignPrecision>();
}

}  // namespace caffe::passes
