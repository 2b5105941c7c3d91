#include "caffe/net/compiled_program.hpp"

#include <map>
#include <optional>
#include <set>

#include "caffe/core/cache_lines.hpp"
#include "caffe/device/device.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/constant.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/pack.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

// True if the op copies bytes of any type.
bool MovesNumbers(const Op& op) {
  return op.is_view() || op.As<ops::Concat>() != nullptr || op.As<ops::SliceOf>() != nullptr ||
         op.As<ops::Permute>() != nullptr;
}

// How an 8-bit step reads its weights; nothing if it is not one.
std::optional<runtime::WeightRows> RowsOf(const runtime::ProgramFile::Step& step,
                                          const TensorDesc& weights) {
  if (step.signature.data != DType::kInt8) return std::nullopt;
  if (step.op.As<ops::Conv>() != nullptr) return runtime::WeightRows{weights.shape[0]};
  if (const auto* gemm = step.op.As<ops::Gemm>())
    return runtime::WeightRows{gemm->columns, !gemm->transpose_b};
  return std::nullopt;
}

class ProgramMaker {
 public:
  ProgramMaker(const Graph& graph, const Bindings& bindings) : graph_(graph), bindings_(bindings) {
    program_.activation_bytes = graph.arena_bytes;
    for (const Node* node : graph.ScheduledNodes()) {
      if (node->direction == Direction::kForward) {
        for (const Value* input : node->inputs) read_.insert(input);
      }
    }
    for (const WeightCopy& copy : WeightCopies(graph)) {
      made_ahead_.insert(copy.node);
      for (const Value* result : copy.results) copies_.insert(result);
    }
  }

  // An output of the program: a step writes it even if no other step reads it.
  void Keep(const Value* value) { kept_.insert(value); }
  void AddSteps() {
    for (const Node* node : graph_.ScheduledNodes()) {
      if (node->direction == Direction::kForward) AddStep(*node);
    }
  }
  int TensorOf(const Value* value);
  // The tensor in plain layout, as callers read blobs.
  int PlainTensorOf(const Value* value);
  // Stores weights that only 8-bit steps read as 8-bit numbers.
  void FoldWeights();
  runtime::ProgramFile Take() { return std::move(program_); }
  runtime::ProgramFile& program() { return program_; }

 private:
  std::string WhereOf(const Node& node) const {
    return PlaceOf(graph_.calls[static_cast<size_t>(node.layers.front())].layer->param());
  }
  void AddStep(const Node& node);
  void AddFixedCall(const Node& node, const ops::FixedCall& call);
  void AddConstant(const Node& node, const std::vector<float>& values);
  bool IsConstant(const Value* value) const {
    return value->kind == ValueKind::kParam || copies_.count(value) > 0;
  }
  void SetConstant(const TensorView& bytes, runtime::ProgramFile::Tensor* tensor) const;
  int64_t PlaceOfOwn(const TensorDesc& desc);

  template <typename Operands>
  std::vector<int> TensorsOf(const Operands& operands) {
    std::vector<int> numbers;
    for (const Value* value : operands) numbers.push_back(value == nullptr ? -1 : TensorOf(value));
    return numbers;
  }

  const Graph& graph_;
  const Bindings& bindings_;
  runtime::ProgramFile program_;
  std::set<const Node*> made_ahead_;
  std::set<const Value*> read_, kept_;
  std::set<const Value*> copies_;                  // of weights
  std::map<const Value*, const Value*> unpacked_;  // packed value -> value before packing
  std::map<const Value*, int> numbers_;
};

void ProgramMaker::AddStep(const Node& node) {
  if (node.op.As<ops::PackWeights>() != nullptr) {
    unpacked_[node.outputs[0]] = node.inputs[0];
    return;
  }
  if (made_ahead_.count(&node) > 0) return;
  if (const auto* constant = node.op.As<ops::Constant>()) {
    AddConstant(node, *constant->values);
    return;
  }
  if (const auto* fill = node.op.As<ops::Fill>()) {
    const auto count = static_cast<size_t>(node.outputs[0]->desc.count());
    AddConstant(node, std::vector<float>(count, static_cast<float>(fill->value)));
    return;
  }
  const auto* const call = node.op.As<ops::HostCall>();
  if (call != nullptr && call->in_programs != nullptr) {
    AddFixedCall(node, *call->in_programs);
    return;
  }
  const std::string where = WhereOf(node);
  if (!runtime::CanHold(node.op)) {
    throw Unsupported(StrCat(where, " runs ", node.op.name(),
                             ", which compiled programs do not have; cut the net before this layer "
                             "and compute the rest outside"));
  }
  for (const Value* output : node.outputs) {
    Require(output == nullptr || output->desc.count() > 0, where, " makes '",
            output == nullptr ? "" : output->name, "', which has no elements");
  }
  Signature signature = node.signature;
  const DType made = node.outputs[0]->desc.dtype;
  if (node.op.is_view()) signature.data = made;
  if (MovesNumbers(node.op) && Is8Bit(made)) signature = {DType::kInt8, DType::kFloat};
  // A mask without readers is not written, but keeps its tensor, because the arena has room for it.
  std::vector<int> outputs = TensorsOf(node.outputs);
  for (size_t i = 1; i < outputs.size(); ++i) {
    if (read_.count(node.outputs[i]) + kept_.count(node.outputs[i]) == 0) outputs[i] = -1;
  }
  program_.steps.push_back({where, node.op, signature, TensorsOf(node.inputs), outputs});
}

void ProgramMaker::AddFixedCall(const Node& node, const ops::FixedCall& call) {
  const Value* const value = node.outputs[0];
  const std::string where = WhereOf(node);
  if (read_.count(value) > 0) {
    throw Unsupported(StrCat(where, " makes '", value->name,
                             "', whose shape depends on the data, and other layers read it; "
                             "compiled programs have fixed shapes: cut the net after this layer"));
  }
  const TensorDesc desc{call.output, value->desc.dtype};
  program_.steps.push_back({where,
                            call.op,
                            node.signature,
                            TensorsOf(node.inputs),
                            {static_cast<int>(program_.tensors.size())}});
  numbers_[value] = static_cast<int>(program_.tensors.size());
  program_.tensors.push_back({value->name, desc, PlaceOfOwn(desc), nullptr});
}

void ProgramMaker::AddConstant(const Node& node, const std::vector<float>& values) {
  const Value* const value = node.outputs[0];
  const TensorDesc floats{value->desc.shape, DType::kFloat};
  runtime::ProgramFile::Tensor tensor{value->name, value->desc, -1, nullptr};
  SetConstant({floats, const_cast<float*>(values.data())}, &tensor);
  numbers_[value] = static_cast<int>(program_.tensors.size());
  program_.tensors.push_back(std::move(tensor));
}

void ProgramMaker::SetConstant(const TensorView& view, runtime::ProgramFile::Tensor* tensor) const {
  const std::shared_ptr<void> memory = graph_.options.device->Allocate(view.bytes());
  CopyTensor(view, {tensor->desc, memory.get()});
  tensor->constant = memory;
}

// Allocates memory after the plan's arena: for blobs that the caller sees, and states.
int64_t ProgramMaker::PlaceOfOwn(const TensorDesc& desc) {
  const int64_t place = WholeLines(program_.activation_bytes);
  program_.activation_bytes = place + WholeLines(static_cast<int64_t>(desc.bytes()));
  return place;
}

int ProgramMaker::TensorOf(const Value* value) {
  const auto packed = unpacked_.find(value);
  if (packed != unpacked_.end()) return TensorOf(packed->second);
  const auto [known, is_new] =
      numbers_.try_emplace(value, static_cast<int>(program_.tensors.size()));
  if (!is_new) return known->second;
  runtime::ProgramFile::Tensor tensor{value->name, value->desc, value->arena_offset, nullptr};
  if (IsConstant(value)) {
    SetConstant(bindings_[static_cast<size_t>(value->id)]->View(), &tensor);
  } else if (tensor.offset < 0) {
    tensor.offset = PlaceOfOwn(value->desc);
  }
  program_.tensors.push_back(std::move(tensor));
  return known->second;
}

int ProgramMaker::PlainTensorOf(const Value* value) {
  const int number = TensorOf(value);
  if (value->desc.layout == Layout::kPlain) return number;
  const TensorDesc plain{value->desc.shape, value->desc.dtype};
  const DType compute = plain.dtype == DType::kDouble ? DType::kDouble : DType::kFloat;
  program_.tensors.push_back({value->name, plain, PlaceOfOwn(plain), nullptr});
  const int result = static_cast<int>(program_.tensors.size()) - 1;
  program_.steps.push_back({StrCat("output '", value->name, "'"),
                            ops::Reorder{},
                            {plain.dtype, compute},
                            {number},
                            {result}});
  return result;
}

void ProgramMaker::FoldWeights() {
  // By tensor; nothing if steps read it in several ways.
  std::map<int, std::optional<runtime::WeightRows>> rows;
  for (const runtime::ProgramFile::Step& step : program_.steps) {
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int number = step.inputs[i];
      if (number < 0) continue;
      const TensorDesc& desc = program_.tensors[static_cast<size_t>(number)].desc;
      const auto read = i == 1 ? RowsOf(step, desc) : std::nullopt;
      const auto [known, is_new] = rows.try_emplace(number, read);
      if (!is_new && known->second != read) known->second.reset();
    }
  }
  for (const auto& [number, of_steps] : rows) {
    runtime::ProgramFile::Tensor& tensor = program_.tensors[static_cast<size_t>(number)];
    if (!of_steps || tensor.offset >= 0 || tensor.desc.dtype != DType::kFloat) continue;
    const int64_t count = tensor.desc.count();
    const std::shared_ptr<void> numbers =
        graph_.options.device->Allocate(runtime::NumberBytes(*of_steps, count));
    runtime::EncodeWeights(*of_steps, static_cast<const float*>(tensor.constant.get()), count,
                           numbers.get());
    tensor.constant = numbers;
    tensor.rows = of_steps;
  }
}

}  // namespace

runtime::ProgramFile MakeProgram(const Graph& graph, const Bindings& bindings,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  ProgramMaker maker(graph, bindings);
  for (const std::string& name : outputs) maker.Keep(graph.blobs.at(name));
  maker.AddSteps();
  for (const std::string& name : inputs) {
    const auto external = graph.external_data.find(name);
    const Value* const value =
        external != graph.external_data.end() ? external->second : graph.blobs.at(name);
    const int number = maker.TensorOf(value);
    maker.program().tensors[static_cast<size_t>(number)].name = name;
    maker.program().inputs.push_back(number);
  }
  for (const std::string& name : outputs) {
    const int number = maker.PlainTensorOf(graph.blobs.at(name));
    maker.program().tensors[static_cast<size_t>(number)].name = name;
    maker.program().outputs.push_back(number);
  }
  maker.FoldWeights();
  return maker.Take();
}

}  // namespace caffe
