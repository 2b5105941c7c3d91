#include <algorithm>
#include <set>

#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/passes/pass.hpp"
#include "caffe/tensor/proto_dtype.hpp"

namespace caffe::passes {
namespace {

struct LayerTypes {
  DType forward, backward, forward_math, backward_math;
};

// NVCaffe's rules: an own field, else the layer's own storage type, else the net's defaults.
LayerTypes ResolveTypes(const LayerCall& call, const PrecisionDefaults& defaults) {
  const LayerParameter& param = call.layer->param();
  LayerTypes types;
  types.forward = param.has_forward_type() ? DTypeFromProto(param.forward_type(), "forward_type")
                                           : defaults.forward_type.value_or(DType::kFloat);
  if (param.has_backward_type()) {
    types.backward = DTypeFromProto(param.backward_type(), "backward_type");
  } else {
    types.backward = call.layer->traits().is_data ? DType::kFloat
                                                  : defaults.backward_type.value_or(DType::kFloat);
  }
  types.forward_math =
      param.has_forward_math() ? DTypeFromProto(param.forward_math(), "forward_math")
      : param.has_forward_type()
          ? types.forward
          : defaults.forward_math.value_or(defaults.forward_type.value_or(DType::kFloat));
  types.backward_math =
      param.has_backward_math() ? DTypeFromProto(param.backward_math(), "backward_math")
      : param.has_backward_type()
          ? types.backward
          : defaults.backward_math.value_or(defaults.backward_type.value_or(DType::kFloat));
  return types;
}

DType AtLeastFloat(DType type) {
  return type == DType::kDouble ? type : DType::kFloat;
}

}  // namespace

// After this pass every value has its storage type and every node says in which type it reads each
// operand and makes each result; insert-casts then bridges the differences. Storage follows
// forward_type and backward_type of the layer that made a value; losses and the scores they read,
// statistics, indices and master weights are never smaller than float. On a CPU, FLOAT16 is storage
// only: convolutions and matrix products of that type compute in float, and so does what has a
// kernel written for speed there (pooling, LRN), which takes float alone.
class AssignPrecision final : public Pass {
 public:
  std::string_view name() const override { return "assign-precision"; }

  void Run(Graph& graph) override {
    types_.clear();
    aside_.clear();
    for (LayerCall& call : graph.calls) {
      for (const auto& [name, value] : call.saved) aside_.insert(value);
      WithContext(PlaceOf(call.layer->param()),
                  [&] { types_.push_back(ResolveTypes(call, graph.options.precision)); });
      call.backward_type = types_.back().backward;
    }
    for (Node* node : graph.ScheduledNodes()) {
      if (node->direction != Direction::kForward) continue;
      if (!node->outputs.empty()) aside_.erase(node->outputs[0]);
      if (node->op.numeric_rule() != NumericRule::kFloat) continue;
      for (Value* output : node->outputs) {
        if (output != nullptr) output->at_least_float = true;
        aside_.erase(output);
      }
    }
    KeepLabelsExact(graph);
    KeepScoresWide(graph);
    for (Value& value : graph.values()) {
      if (value.layer >= 0) value.desc.dtype = StorageType(value);
    }
    // What a user hands over lies where the blob's last version (its gradient) will.
    for (const auto& [name, value] : graph.external_data) ShareType(*value, *graph.blobs.at(name));
    for (const auto& [name, value] : graph.external_diffs) {
      const auto gradient = graph.blob_grads.find(name);
      if (gradient != graph.blob_grads.end()) ShareType(*value, *gradient->second);
    }
    for (Node* node : graph.ScheduledNodes()) AssignOperands(graph, *node);
  }

 private:
  // Class numbers above 256 are not exact in bfloat16, so labels stay float from where they are
  // made, through ops that only move them.
  static void KeepLabelsExact(Graph& graph) {
    std::vector<Node*> nodes = graph.ScheduledNodes();
    std::reverse(nodes.begin(), nodes.end());
    for (Node* node : nodes) {
      if (node->direction != Direction::kForward) continue;
      const Op& op = node->op;
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        if (IsExactInput(*node, i) && node->inputs[i] != nullptr) {
          node->inputs[i]->at_least_float = true;
        }
      }
      const bool moves =
          op.is_view() || op.As<ops::SliceOf>() != nullptr || op.As<ops::Concat>() != nullptr;
      if (!moves || node->outputs[0] == nullptr || !node->outputs[0]->at_least_float) continue;
      for (Value* input : node->inputs) input->at_least_float = true;
    }
  }

  // A matrix product's sums are float already. Where only ops that compute in float read them (a
  // loss, an accuracy), rounding between would save nothing, and scores that are rounded to
  // bfloat16 tie, which counts against the label: 0.2 points of CIFAR-10 quick. A layer's own
  // forward_type is obeyed.
  static void KeepScoresWide(Graph& graph) {
    const auto readers = Readers(graph);
    const auto reads_narrow = [](const Node* reader) {
      return reader->direction == Direction::kForward &&
             reader->op.numeric_rule() != NumericRule::kFloat;
    };
    for (const Node* node : graph.ScheduledNodes()) {
      if (node->direction != Direction::kForward || node->op.As<ops::Gemm>() == nullptr) continue;
      if (graph.calls[node->layers.front()].layer->param().has_forward_type()) continue;
      Value* scores = node->outputs[0];
      const auto found = readers.find(scores);
      if (found != readers.end() && std::ranges::any_of(found->second, reads_narrow)) continue;
      scores->at_least_float = true;
    }
  }

  // Gives two values that share memory the wider of their types.
  static void ShareType(Value& one, Value& other) {
    if (one.desc.dtype == other.desc.dtype) return;
    const bool is_double = one.desc.dtype == DType::kDouble || other.desc.dtype == DType::kDouble;
    one.desc.dtype = other.desc.dtype = is_double ? DType::kDouble : DType::kFloat;
  }

  DType StorageType(const Value& value) const {
    if (value.desc.dtype == DType::kUInt8) return DType::kUInt8;
    const LayerTypes& types = types_[value.layer];
    if (IsParam(value)) return AtLeastFloat(types.forward);
    const bool is_gradient = value.gradient_of != nullptr;
    const DType type = is_gradient ? types.backward : types.forward;
    const bool wide = value.at_least_float || (is_gradient && value.gradient_of->at_least_float);
    return wide ? AtLeastFloat(type) : type;
  }

  static bool IsParam(const Value& value) {
    return value.kind == ValueKind::kParam || value.kind == ValueKind::kParamGrad;
  }

  static bool IsExactInput(const Node& node, size_t i) {
    return i < 32 && ((node.op.exact_inputs() >> i) & 1u) != 0;
  }

  // Labels, masks and statistics, which kernels read in a type of their own.
  bool StandsAlone(const Node& node, size_t i) const {
    return IsExactInput(node, i) || aside_.contains(node.inputs[i]);
  }

  // The type that a node's main operands have while it computes.
  DType ComputeType(const Graph& graph, const Node& node) const {
    const LayerTypes& types = types_[node.layers.front()];
    const bool is_forward = node.direction == Direction::kForward;
    const DType storage = is_forward ? types.forward : types.backward;
    switch (node.op.numeric_rule()) {
      case NumericRule::kFloat:
        for (const Value* output : node.outputs) {  // one type for all, so the master weights'
          if (output != nullptr && output->kind == ValueKind::kParamGrad) return output->desc.dtype;
        }
        return AtLeastFloat(storage);
      case NumericRule::kMath: {
        DType math = is_forward ? types.forward_math : types.backward_math;
        if (storage == DType::kDouble) math = DType::kDouble;
        const bool is_cpu = graph.options.device->kind() == DeviceKind::kCpu;
        return is_cpu && math == DType::kFloat16 ? DType::kFloat : math;
      }
      case NumericRule::kStorage:
        break;
    }
    const bool in_float = MovesWideValues(node) || IsFasterInFloat(graph, node);
    return in_float ? AtLeastFloat(storage) : storage;
  }

  // A conversion costs a CPU less than a plain kernel's window loops over 16-bit numbers: a step of
  // CIFAR-10 quick in FLOAT16 takes a quarter of the time.
  static bool IsFasterInFloat(const Graph& graph, const Node& node) {
    if (graph.options.device->kind() != DeviceKind::kCpu) return false;
    const auto& kernels = KernelRegistry::Get().Candidates(DeviceKind::kCpu, node.op.type());
    return std::any_of(kernels.begin(), kernels.end(), [](const KernelCandidate& kernel) {
      return kernel.rank != KernelRank::kReference;
    });
  }

  // Kernels that compute in storage types have one for all they move, so an op that reads or makes
  // what is never stored in 16 bits (the top of a Softmax, the gradient of one) computes in float
  // as a whole. Masks and statistics, which are saved aside, are read as they are.
  bool MovesWideValues(const Node& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value* input = node.inputs[i];
      if (input != nullptr && input->at_least_float && !StandsAlone(node, i)) return true;
    }
    const Value* output = node.outputs.empty() ? nullptr : node.outputs[0];
    return output != nullptr && output->at_least_float;
  }

  void AssignOperands(const Graph& graph, Node& node) const {
    const DType compute = ComputeType(graph, node);
    const bool is_math = node.op.numeric_rule() == NumericRule::kMath;
    const bool is_float = node.op.numeric_rule() == NumericRule::kFloat;
    const auto input_type = [&](size_t i) {
      const Value* value = node.inputs[i];
      if (value == nullptr || is_float) return compute;  // such kernels have one type for all
      if (value->desc.dtype == DType::kUInt8) return DType::kUInt8;
      const bool is_weight = value->kind == ValueKind::kParam && value->desc.shape.num_axes() >= 2;
      if (IsParam(*value)) return is_math && is_weight ? compute : value->desc.dtype;
      const bool keeps_type = value->at_least_float && StandsAlone(node, i) && !is_math;
      return keeps_type ? value->desc.dtype : compute;
    };
    node.wanted.clear();
    node.made.clear();
    for (size_t i = 0; i < node.inputs.size(); ++i) node.wanted.push_back(input_type(i));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value* output = node.outputs[i];
      const bool is_main =
          output == nullptr || (output->kind == ValueKind::kActivation &&
                                (i == 0 || is_math || is_float || !output->at_least_float));
      const bool is_wide_product =
          output != nullptr && output->at_least_float && node.op.As<ops::Gemm>() != nullptr;
      node.made.push_back(is_main && !is_wide_product ? compute : output->desc.dtype);
    }
    // Moves and fills work in whatever type their result is stored in.
    if (node.op.is_view() || node.inputs.empty()) {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != nullptr) node.made[i] = node.outputs[i]->desc.dtype;
      }
      if (node.op.is_view() && node.outputs[0] != nullptr) node.wanted[0] = node.made[0];
    }
  }

  std::vector<LayerTypes> types_;
  // Saved values that ops of rule kStorage or kMath make beside their first result.
  std::set<const Value*> aside_;
};

std::unique_ptr<Pass> MakeAssignPrecision() {
  return std::make_unique<AssignPrecision>();
}

}  // namespace caffe::passes
