#include "caffe/graph/graph.hpp"

#include <algorithm>

#include "caffe/ops/read_again.hpp"

namespace caffe {

bool CompileOptions::is_disabled(std::string_view pass) const {
  return std::find(disabled_passes.begin(), disabled_passes.end(), pass) != disabled_passes.end();
}

namespace {

// Null if absent. Ops count FLOPs by shapes, which packed weights do not have.
const TensorDesc* LogicalDesc(const Value* value) {
  if (value == nullptr) return nullptr;
  return value->packed_from != nullptr ? &value->packed_from->desc : &value->desc;
}

template <typename Operands>
std::vector<const TensorDesc*> DescsIfPresent(const Operands& operands) {
  std::vector<const TensorDesc*> descs;
  for (const Value* value : operands) descs.push_back(LogicalDesc(value));
  return descs;
}

template <typename Operands>
std::vector<TensorDesc> DescsOf(const Operands& operands) {
  std::vector<TensorDesc> descs;
  for (const TensorDesc* desc : DescsIfPresent(operands))
    descs.push_back(desc == nullptr ? TensorDesc{} : *desc);
  return descs;
}

template <typename Operands>
double BytesOf(const Operands& operands) {
  double bytes = 0;
  for (const Value* value : operands)
    bytes += value == nullptr ? 0 : static_cast<double>(value->desc.bytes());
  return bytes;
}

}  // namespace

double Node::Flops() const {
  return static_cast<double>(rounds()) * op.Flops(DescsOf(inputs), DescsOf(outputs));
}

double Node::BytesMoved() const {
  const double again = ops::BytesReadAgain(op, DescsIfPresent(inputs), DescsIfPresent(outputs));
  return static_cast<double>(rounds()) * (BytesOf(inputs) + BytesOf(outputs) + again);
}

Value& Graph::NewValue(std::string name, Shape shape, DType dtype, ValueKind kind) {
  Value value;
  value.id = static_cast<int>(values_.size());
  value.name = std::move(name);
  value.kind = kind;
  value.desc = {std::move(shape), dtype, Layout::kPlain};
  return values_.emplace_back(std::move(value));
}

std::unique_ptr<Node> Graph::MakeNode(Op op, std::vector<Value*> inputs,
                                      std::vector<Value*> outputs) {
  auto node = std::unique_ptr<Node>(new Node{.op = std::move(op)});
  node->id = next_node_id_++;
  node->inputs.assign(inputs.begin(), inputs.end());
  node->outputs.assign(outputs.begin(), outputs.end());
  for (Operand& input : node->inputs) {
    if (input != nullptr) input.dtype = input->desc.dtype;
  }
  for (Result& output : node->outputs) {
    if (output != nullptr) output.dtype = output->desc.dtype;
  }
  return node;
}

Node& Graph::Append(Op op, std::vector<Value*> inputs, std::vector<Value*> outputs) {
  nodes_.push_back(MakeNode(std::move(op), std::move(inputs), std::move(outputs)));
  return *nodes_.back();
}

Node& Graph::InsertBefore(const Node& reader, Op op, std::vector<Value*> inputs,
                          std::vector<Value*> outputs) {
  const auto position = std::find_if(nodes_.begin(), nodes_.end(),
                                     [&](const auto& node) { return node.get() == &reader; });
  CAFFE_ASSERT(position != nodes_.end());
  auto node = MakeNode(std::move(op), std::move(inputs), std::move(outputs));
  node->layers = {reader.layers.front()};
  node->direction = reader.direction;
  node->loop = reader.loop;
  return **nodes_.insert(position, std::move(node));
}

Node& Graph::InsertAfter(const Node& writer, Op op, std::vector<Value*> inputs,
                         std::vector<Value*> outputs) {
  const auto position = std::find_if(nodes_.begin(), nodes_.end(),
                                     [&](const auto& node) { return node.get() == &writer; });
  CAFFE_ASSERT(position != nodes_.end());
  auto node = MakeNode(std::move(op), std::move(inputs), std::move(outputs));
  node->layers = {writer.layers.front()};
  node->direction = writer.direction;
  node->loop = writer.loop;
  return **nodes_.insert(position + 1, std::move(node));
}

void Graph::Erase(const std::vector<Node*>& nodes) {
  std::erase_if(nodes_, [&](const auto& node) {
    return std::find(nodes.begin(), nodes.end(), node.get()) != nodes.end();
  });
}

std::vector<Node*> Graph::ScheduledNodes() const {
  std::vector<Node*> nodes;
  nodes.reserve(nodes_.size());
  for (const auto& node : nodes_) nodes.push_back(node.get());
  return nodes;
}

std::map<const Value*, std::vector<Node*>> Readers(const Graph& graph) {
  std::map<const Value*, std::vector<Node*>> readers;
  for (Node* node : graph.ScheduledNodes()) {
    for (const Value* input : node->inputs) {
      if (input != nullptr) readers[input].push_back(node);
    }
  }
  return readers;
}

std::map<const Value*, Node*> Writers(const Graph& graph) {
  std::map<const Value*, Node*> writers;
  for (Node* node : graph.ScheduledNodes()) {
    for (const Value* output : node->outputs) {
      if (output != nullptr && output->kind == ValueKind::kActivation) writers[output] = node;
    }
  }
  return writers;
}

std::pair<int, int> LoopAround(const std::vector<Node*>& schedule, int step) {
  const std::shared_ptr<const BatchLoop>& loop = schedule[step]->loop;
  if (loop == nullptr) return {step, step};
  const auto is_in_loop = [&](const Node* node) { return node->loop == loop; };
  const auto first = std::ranges::find_if(schedule, is_in_loop);
  const auto last = std::find_if(schedule.rbegin(), schedule.rend(), is_in_loop);
  return {static_cast<int>(first - schedule.begin()), static_cast<int>(schedule.rend() - last) - 1};
}

std::set<const Value*> WrittenParams(const Graph& graph) {
  std::set<const Value*> written;
  for (const Node* node : graph.ScheduledNodes()) {
    for (Value* output : node->outputs) {
      if (output != nullptr && output->kind == ValueKind::kParam) written.insert(output->root());
    }
  }
  return written;
}

}  // namespace caffe
