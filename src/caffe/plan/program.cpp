#include "caffe/plan/program.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "caffe/graph/layer_place.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/pack.hpp"

namespace caffe {
namespace {

bool IsEmpty(const Value* value) {
  return value == nullptr || value->desc.count() == 0;
}

template <typename Operands>
std::vector<int> NumbersOf(const Operands& operands) {
  std::vector<int> numbers;
  for (const Value* value : operands) numbers.push_back(value == nullptr ? -1 : value->id);
  return numbers;
}

Program::Step MakeStep(const Graph& graph, const Node& node) {
  const Layer& layer = *graph.calls[node.layers.front()].layer;
  Program::Step step{.kernel = node.kernel,
                     .inputs = NumbersOf(node.inputs),
                     .outputs = NumbersOf(node.outputs),
                     .work = WorkOf(node),
                     .calls_host = node.op.As<ops::HostCall>() != nullptr,
                     .direction = node.direction,
                     .layer = node.layers.front(),
                     .starts_at = node.layers.front(),
                     .layer_name = layer.name(),
                     .where = PlaceOf(layer.param())};
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Accumulation accumulation = node.outputs[i].accumulation;
    if (accumulation == Accumulation::kAlways) step.always_accumulated.insert(i);
    if (accumulation == Accumulation::kOnRequest) step.accumulated_on_request.insert(i);
  }
  return step;
}

uint64_t HashOf(const std::string& text) {
  return std::max<uint64_t>(std::hash<std::string>()(text), 1);
}

bool IsCastOfParam(const Node& node) {
  const auto is_plain = [](const Value* value) {
    return value->owner == nullptr && value->desc.layout == Layout::kPlain;
  };
  return node.op.As<ops::Cast>() != nullptr && node.inputs.size() == 1 &&
         node.inputs[0]->kind == ValueKind::kParam && is_plain(node.inputs[0]) &&
         is_plain(node.outputs[0]) && !Is8Bit(node.outputs[0]->desc.dtype);
}

// The last node with an operand of this kind, by the id of the value that owns the memory.
class LastUses {
 public:
  explicit LastUses(ValueKind kind) : kind_(kind) {}

  template <typename Operands>
  void Add(const Operands& operands, size_t node) {
    for (Value* value : operands) {
      if (value != nullptr && value->kind == kind_) nodes_[value->root()->id] = node;
    }
  }
  const std::map<int, size_t>& nodes() const { return nodes_; }

 private:
  const ValueKind kind_;
  std::map<int, size_t> nodes_;
};

void MarkGradients(const Graph& graph, const std::vector<Node*>& nodes,
                   std::vector<Program::Step>* steps) {
  LastUses writers(ValueKind::kParamGrad), users(ValueKind::kParam);
  for (size_t i = 0; i < nodes.size(); ++i) {
    writers.Add(nodes[i]->outputs, i);
    if (nodes[i]->direction == Direction::kForward) continue;
    users.Add(nodes[i]->inputs, i);
    users.Add(nodes[i]->outputs, i);
  }
  for (const auto& [gradient, writer] : writers.nodes()) {
    (*steps)[writer].final_gradients.push_back(gradient);
    const auto user = users.nodes().find(graph.values()[gradient].gradient_of->id);
    const size_t last = user == users.nodes().end() ? writer : std::max(writer, user->second);
    (*steps)[last].updatable_gradients.push_back(gradient);
  }
}

void AddLoops(const std::vector<Node*>& nodes, Program* program) {
  const size_t begin = program->copies.size();
  for (size_t i = begin; i < nodes.size(); ++i) {
    const std::shared_ptr<const BatchLoop>& loop = nodes[i]->loop;
    if (loop == nullptr) continue;
    if (i == begin || nodes[i - 1]->loop != loop) program->loops.push_back({i, i, *loop});
    Program::Loop& current = program->loops.back();
    CAFFE_ASSERT(current.last == i && LoopAround(nodes, static_cast<int>(i)).first ==
                                          static_cast<int>(current.first),
                 "another step interrupts a loop");
    current.last = i + 1;
    program->steps[i].loop = static_cast<int>(program->loops.size()) - 1;
    program->steps[i].starts_at = program->steps[current.first].layer;
  }
}

// Weights that are packed for a loop are packed whenever it runs.
void StartWithLoops(const std::vector<Node*>& nodes, Program* program) {
  std::map<const Value*, size_t> packing;
  for (size_t i = program->copies.size(); i < nodes.size(); ++i) {
    if (nodes[i]->op.As<ops::PackWeights>() != nullptr) packing[nodes[i]->outputs[0]] = i;
    if (nodes[i]->loop == nullptr) continue;
    for (const Value* input : nodes[i]->inputs) {
      const auto found = packing.find(input);
      if (found != packing.end())
        program->steps[found->second].starts_at = program->steps[i].starts_at;
    }
  }
}

}  // namespace

Program::Work WorkOf(const Node& node) {
  if (node.op.As<ops::HostCall>() != nullptr) return Program::Work::kRun;
  if (std::all_of(node.outputs.begin(), node.outputs.end(), IsEmpty))
    return node.outputs.empty() ? Program::Work::kRun : Program::Work::kNothing;
  const bool reads_empty =
      std::any_of(node.inputs.begin(), node.inputs.end(),
                  [](const Value* value) { return value != nullptr && value->desc.count() == 0; });
  const bool moves = node.op.As<ops::Concat>() != nullptr;  // parameters, too
  const bool reads_items =
      std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value* value) {
        return !IsEmpty(value) && (moves || value->kind == ValueKind::kActivation ||
                                   value->kind == ValueKind::kExternal);
      });
  return reads_empty && !reads_items ? Program::Work::kZero : Program::Work::kRun;
}

Program Assemble(const Graph& graph) {
  Program program{
      .device = graph.options.device,
      .records_steps = !graph.options.is_disabled("capture-graph"),
      .frees_unread_copies = !graph.options.is_training_phase && !graph.options.for_any_processor,
      .num_layers = static_cast<int>(graph.calls.size()),
      .arena_bytes = graph.arena_bytes,
      .workspace_bytes = graph.workspace_bytes};
  for (const Value& value : graph.values()) {
    const auto element = static_cast<int64_t>(SizeOf(value.desc.dtype));
    const Value* whole = value.whole();
    program.tensors.push_back({value.name, value.desc, value.arena_offset,
                               value.part_offset * element, whole == &value ? -1 : whole->id});
  }
  std::set<const Node*> makes_copy;
  for (const WeightCopy& copy : WeightCopies(graph)) {
    program.copies.push_back({NumbersOf(copy.weights), NumbersOf(copy.results), copy.sources,
                              copy.is_read, IsCastOfParam(*copy.node), HashOf(copy.recipe)});
    makes_copy.insert(copy.node);
  }
  std::vector<Node*> nodes = graph.ScheduledNodes();
  std::stable_partition(nodes.begin(), nodes.end(),
                        [&](const Node* node) { return makes_copy.count(node) > 0; });
  for (const Node* node : nodes) program.steps.push_back(MakeStep(graph, *node));
  AddLoops(nodes, &program);
  StartWithLoops(nodes, &program);
  MarkGradients(graph, nodes, &program.steps);
  return program;
}

}  // namespace caffe
