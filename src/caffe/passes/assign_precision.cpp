#include <algorithm>
#include <set>
#include <tuple>

#include "caffe/graph/layer_place.hpp"
#include "caffe/passes/pass.hpp"
#include "caffe/passes/stored_types.hpp"

namespace caffe::passes {
namespace {

bool IsHalf(DType type) {
  return SizeOf(type) == 2;
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

// After this pass every value has its storage type (stored_types.hpp), every node the signature
// that it is computed in, and every operand the type in which the node sees it; insert-casts then
// adds the conversions. A node's signature is declared by the device's best kernel that meets the
// layer's types, else the nearest wider one.
class AssignPrecision final : public Pass {
 public:
  std::string_view name() const override { return "assign-precision"; }

  void Run(Graph& graph) override {
    side_results_ = AssignStoredTypes(graph);
    for (Node* node : graph.ScheduledNodes()) {
      AssignRoles(*node);
      ChooseSignature(graph, *node);
      AssignOperands(graph, *node);
    }
  }

 private:
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
                 (i > 0 || node.op.makes_float())) {
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
};

std::unique_ptr<Pass> MakeAssignPrecision() {
  return std::make_unique<AssignPrecision>();
}

}  // namespace caffe::passes
