#include "caffe/plan/executor.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "caffe/error.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/tensor/synced_tensor.hpp"
#include "caffe/trace.hpp"

namespace caffe {

Executor::Executor(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) {
  std::vector<Node*> nodes = graph_->ScheduledNodes();
  std::set<const Node*> copies;
  for (const WeightCopy& copy : WeightCopies(*graph_)) {
    copies_.push_back({copy});
    copies.insert(copy.node);
  }
  std::stable_partition(nodes.begin(), nodes.end(),
                        [&](const Node* node) { return copies.count(node) > 0; });
  steps_.resize(nodes.size());
  step_times_.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    steps_[i].node = nodes[i];
    steps_[i].work = WorkOf(*nodes[i]);
    step_times_[i].node = nodes[i];
    const Layer& layer = *graph_->calls[nodes[i]->layers.front()].layer;
    steps_[i].layer = layer.name();
    steps_[i].where = PlaceOf(layer.param());
  }
  FindFinalGradients();
  FindReadersOfCopies();
}

void Executor::FindFinalGradients() {
  std::map<Value*, size_t> last_writers;  // by root
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (Value* output : steps_[i].node->outputs) {
      if (output != nullptr && output->kind == ValueKind::kParamGrad) {
        last_writers[output->root()] = i;
      }
    }
  }
  for (const auto& [gradient, step] : last_writers) steps_[step].final_grads.push_back(gradient);
  for (Step& step : steps_) {
    std::sort(step.final_grads.begin(), step.final_grads.end(),
              [](const Value* a, const Value* b) { return a->id < b->id; });
  }
}

std::vector<SyncedTensor*> Executor::Gradients() const {
  std::vector<SyncedTensor*> gradients;
  for (const Step& step : steps_) {
    for (const Value* gradient : step.final_grads) gradients.push_back(gradient->tensor);
  }
  return gradients;
}

std::vector<Executor::KeptCopy> Executor::KeptCopies() const {
  std::vector<KeptCopy> kept;
  if (graph_->options.device->is_host_accessible()) return kept;
  for (const CopyState& state : copies_) {
    if (state.plan.is_read) kept.push_back({state.plan.weights->tensor, state.plan.copy->tensor});
  }
  return kept;
}

bool Executor::IsMade(const KeptCopy& copy) const {
  return std::any_of(copies_.begin(), copies_.end(), [&](const CopyState& state) {
    return state.plan.copy->tensor == copy.copy && state.made_of == copy.weights->version();
  });
}

void Executor::MarkMade(const KeptCopy& copy) {
  for (CopyState& state : copies_) {
    if (state.plan.copy->tensor == copy.copy) state.made_of = copy.weights->version();
  }
}

void Executor::FindReadersOfCopies() {
  std::map<const Value*, CopyState*> states;
  for (CopyState& state : copies_) states[state.plan.copy] = &state;
  for (size_t i = copies_.size(); i < steps_.size(); ++i) {
    for (const Value* input : steps_[i].node->inputs) {
      const auto found = states.find(input);
      if (found != states.end() && found->second->first_reader == nullptr)
        found->second->first_reader = steps_[i].node;
    }
  }
}

void Executor::MakeCopies(const RunOptions& options) {
  const bool may_be_stale = graph_->options.device->is_host_accessible();
  for (size_t i = 0; i < copies_.size(); ++i) {
    const Node* reader = copies_[i].first_reader;
    if (reader == nullptr) continue;
    MakeCopy(i, options, may_be_stale && IsPartOf(*reader, options));
  }
}

void Executor::MakeCopy(size_t index, const RunOptions& options, bool even_if_current) {
  CopyState& state = copies_[index];
  const uint64_t version = state.plan.weights->tensor->version();
  if (state.made_of == version && !even_if_current) return;
  if (state.plan.source >= 0)
    MakeCopy(static_cast<size_t>(state.plan.source), options, even_if_current);
  WithContext(steps_[index].where, [&] { RunStep(index, options); });
  state.made_of = version;
}

void Executor::Allocate() {
  Device& device = *graph_->options.device;
  Memory memory = std::exchange(offered_, {});
  const auto take = [&](std::shared_ptr<void>* mine, int64_t* mine_bytes,
                        const std::shared_ptr<void>& offered, int64_t offered_bytes,
                        int64_t needed) {
    const bool serves = offered != nullptr && offered_bytes >= needed;
    *mine_bytes = serves ? offered_bytes : needed;
    *mine = serves ? offered : device.Allocate(static_cast<size_t>(needed));
  };
  take(&arena_, &arena_bytes_, memory.arena, memory.arena_bytes, graph_->arena_bytes);
  take(&workspace_, &workspace_bytes_, memory.workspace, memory.workspace_bytes,
       graph_->workspace_bytes);
  if (!device.is_host_accessible() && pass_numbers_ == nullptr)
    pass_numbers_ = device.Allocate(sizeof(PassNumbers));
  BindOperands();
}

Executor::Memory Executor::ReleaseMemory() {
  segments_.clear();
  return {std::exchange(arena_, nullptr), std::exchange(workspace_, nullptr),
          std::exchange(arena_bytes_, 0), std::exchange(workspace_bytes_, 0)};
}

void Executor::ForgetCopies() {
  for (CopyState& state : copies_) state.made_of = 0;
}

void Executor::BindOperands() {
  const auto make_view = [&](Value* value) -> TensorView {
    if (value == nullptr) return {};
    return value->arena_offset >= 0 ? ArenaView(*value) : TensorView{value->desc, nullptr};
  };
  bound_.clear();
  for (Step& step : steps_) {
    step.inputs.clear();
    step.outputs.clear();
    for (Value* input : step.node->inputs) step.inputs.push_back(make_view(input));
    for (Value* output : step.node->outputs) step.outputs.push_back(make_view(output));
  }
  for (Step& step : steps_) {
    const auto bind = [&](Value* value, TensorView& view, bool is_output) {
      if (value == nullptr || value->arena_offset >= 0) return;
      CAFFE_ASSERT(value->tensor != nullptr, "'", value->name, "' has no memory");
      bound_.push_back({&view, value->tensor, is_output});
    };
    for (size_t i = 0; i < step.inputs.size(); ++i)
      bind(step.node->inputs[i], step.inputs[i], false);
    for (size_t i = 0; i < step.outputs.size(); ++i)
      bind(step.node->outputs[i], step.outputs[i], true);
  }
}

void Executor::RefreshBoundOperands() {
  bool has_moved = false;
  for (BoundOperand& operand : bound_) {
    void* const data = operand.tensor->data();
    has_moved |= operand.view->data != data;
    operand.view->data = data;
  }
  if (has_moved) segments_.clear();  // recorded work keeps its addresses
}

void Executor::ForgetSegmentsOfOther(const RunOptions& options) {
  if (options.loss_scale != recorded_loss_scale_) segments_.clear();
  recorded_loss_scale_ = options.loss_scale;
}

void Executor::PrepareAppended(const RunOptions& options) {
  if (options.appended == nullptr) return;
  const uint64_t work = options.appended->Prepare();
  if (work != recorded_work_) segments_.clear();
  recorded_work_ = work;
}

void Executor::SendPassNumbers(const RunOptions& options) {
  if (pass_numbers_ == nullptr) return;
  const PassNumbers numbers{options.random.seed, options.random.pass};
  graph_->options.device->compute_stream().CopyFromHost(pass_numbers_.get(), &numbers,
                                                        sizeof(numbers));
}

bool Executor::IsPartOf(const Node& node, const RunOptions& options) const {
  const int last =
      options.last_layer < 0 ? static_cast<int>(graph_->calls.size()) - 1 : options.last_layer;
  const int layer = node.layers.front();
  const bool runs_both = !options.direction;
  if (runs_both && node.direction == Direction::kBackward) return true;
  return (runs_both || node.direction == *options.direction) && layer >= options.first_layer &&
         layer <= last;
}

std::optional<Executor::ShapeChange> Executor::Run(const RunOptions& options) {
  graph_->options.device->MakeCurrent();
  if (!arena_) Allocate();
  RefreshBoundOperands();
  ForgetSegmentsOfOther(options);
  PrepareAppended(options);
  SendPassNumbers(options);
  MakeCopies(options);
  const auto is_part = [&](size_t step) { return IsPartOf(*steps_[step].node, options); };
  const auto calls_host = [&](size_t step) {
    return steps_[step].node->op.As<ops::HostCall>() != nullptr;
  };
  // Gradients that are waited for end a segment, so that they need not wait for the whole.
  const auto ends = [&](size_t step) {
    return options.on_gradient != nullptr && !steps_[step].final_grads.empty();
  };
  size_t end = steps_.size();  // of the run
  while (end > copies_.size() && !is_part(end - 1)) --end;
  AppendedWork* appended = options.appended;
  std::optional<ShapeChange> change;
  for (size_t i = copies_.size(); i < end && !change; ++i) {
    if (!is_part(i)) continue;
    if (!calls_host(i)) {
      const size_t first = i;
      while (i + 1 < end && is_part(i + 1) && !calls_host(i + 1) && !ends(i)) ++i;
      const bool is_last = i + 1 == end;
      RunSegment(first, i + 1, is_last ? std::exchange(appended, nullptr) : nullptr, options);
      continue;
    }
    try {
      WithContext(steps_[i].where, [&] { RunStep(i, options); });
    } catch (const ops::TopShapesDiffer& found) {
      change = {steps_[i].node->layers.front(), found.tops};
    }
  }
  if (appended != nullptr && !change) RunSegment(end, end, appended, options);
  if (is_profiling_) AddTimes();
  for (const BoundOperand& operand : bound_) {
    if (operand.is_output) operand.tensor->MarkWritten();
  }
  if (options.appended != nullptr && !change) options.appended->Finish();
  return change;
}

void Executor::RunSteps(size_t first, size_t last, AppendedWork* appended,
                        const RunOptions& options) {
  for (size_t i = first; i < last; ++i) {
    WithContext(steps_[i].where, [&] { RunStep(i, options); });
    ReportGradients(i, options);
  }
  if (appended != nullptr) appended->Launch();
}

void Executor::RunSegment(size_t first, size_t last, AppendedWork* appended,
                          const RunOptions& options) {
  Stream& stream = graph_->options.device->compute_stream();
  if (!stream.can_capture() || is_profiling_ || options.inspect ||
      graph_->options.is_disabled("capture-graph")) {
    return RunSteps(first, last, appended, options);
  }
  Segment& segment = segments_[{first, last, options.accumulate, appended != nullptr}];
  // The first time kernels may still send tables and load code.
  if (segment.runs++ == 0 || segment.cannot_be_recorded)
    return RunSteps(first, last, appended, options);
  if (segment.recorded == nullptr) segment.recorded = Record(first, last, appended, options);
  if (segment.recorded == nullptr) {
    segment.cannot_be_recorded = true;
    return RunSteps(first, last, appended, options);
  }
  stream.Launch(*segment.recorded);
  for (size_t i = first; i < last; ++i) ReportGradients(i, options);
}

void Executor::ReportGradients(size_t step, const RunOptions& options) const {
  if (options.on_gradient == nullptr) return;
  for (const Value* gradient : steps_[step].final_grads) (*options.on_gradient)(*gradient->tensor);
}

// Null when a step does what cannot be recorded.
std::unique_ptr<CapturedGraph> Executor::Record(size_t first, size_t last, AppendedWork* appended,
                                                const RunOptions& options) {
  Stream& stream = graph_->options.device->compute_stream();
  stream.BeginCapture();
  try {
    for (size_t i = first; i < last; ++i) RunStep(i, options);
    if (appended != nullptr) appended->Launch();
  } catch (const DeviceError&) {
    stream.EndCapture();
    return nullptr;
  } catch (...) {
    stream.EndCapture();  // while it records, nothing else could be run on it
    throw;
  }
  return stream.EndCapture();
}

std::map<std::string, const Value*> Executor::ArenaValues() const {
  std::map<std::string, int> versions;
  std::map<std::string, const Value*> values;
  for (const Value& value : graph_->values()) {
    const std::string name = StrCat(value.name, '#', versions[value.name]++);
    if (value.arena_offset >= 0) values[name] = &value;
  }
  return values;
}

TensorView Executor::ArenaView(const Value& value) const {
  return {value.desc, static_cast<char*>(arena_.get()) + value.arena_offset};
}

std::set<const Value*> Executor::AliveBefore(int layer) const {
  std::set<const Value*> written, alive;
  bool is_before = true;
  for (size_t i = copies_.size(); i < steps_.size(); ++i) {
    const Node& node = *steps_[i].node;
    is_before =
        is_before && !(node.direction == Direction::kForward && node.layers.front() >= layer);
    if (is_before) {
      written.insert(node.outputs.begin(), node.outputs.end());
    } else {
      for (const Value* input : node.inputs) {
        if (written.count(input) > 0) alive.insert(input);
      }
    }
  }
  return alive;
}

void Executor::TakeOver(const Executor& previous, int layer) {
  if (!arena_) Allocate();
  Device& device = *graph_->options.device;
  device.Synchronize();
  // Only what is alive at that point: other values' places may hold it.
  const std::set<const Value*> alive = AliveBefore(layer);
  const std::map<std::string, const Value*> theirs = previous.ArenaValues();
  std::vector<char> from, to;
  for (const auto& [name, value] : ArenaValues()) {
    const auto found = theirs.find(name);
    if (alive.count(value) == 0 || found == theirs.end()) continue;
    CAFFE_ASSERT(found->second->desc.count() == value->desc.count(), name);
    from.resize(found->second->desc.bytes());
    to.resize(value->desc.bytes());
    device.CopyToHost(from.data(), previous.ArenaView(*found->second).data, from.size());
    CopyTensor({found->second->desc, from.data()}, {value->desc, to.data()});
    device.CopyFromHost(ArenaView(*value).data, to.data(), to.size());
  }
}

Executor::Work Executor::WorkOf(const Node& node) {
  if (node.op.As<ops::HostCall>() != nullptr) return Work::kRun;
  const auto is_empty = [](const Value* value) {
    return value == nullptr || value->desc.count() == 0;
  };
  const auto is_full_activation = [&](const Value* value) {
    return !is_empty(value) && value->kind == ValueKind::kActivation;
  };
  const auto& [inputs, outputs] = std::tie(node.inputs, node.outputs);
  if (std::all_of(outputs.begin(), outputs.end(), is_empty)) {
    return outputs.empty() ? Work::kRun : Work::kNothing;
  }
  const bool reads_empty = std::any_of(inputs.begin(), inputs.end(), [&](const Value* value) {
    return value != nullptr && value->desc.count() == 0;
  });
  const bool reads_items = std::any_of(inputs.begin(), inputs.end(), is_full_activation);
  return reads_empty && !reads_items ? Work::kZero : Work::kRun;
}

void Executor::ZeroOutputs(const KernelContext& context) {
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    const TensorView& output = context.outputs[i];
    if (output.data == nullptr || context.accumulates(static_cast<int>(i))) continue;
    context.stream->FillZero(output.data, output.bytes());
  }
}

void Executor::RunStep(size_t index, const RunOptions& options) {
  const Step& step = steps_[index];
  KernelContext context;
  context.inputs = step.inputs;
  context.outputs = step.outputs;
  context.workspace = workspace_.get();
  context.stream = &graph_->options.device->compute_stream();
  context.random = options.random;
  context.loss_scale = options.loss_scale;
  if (const auto* numbers = static_cast<const PassNumbers*>(pass_numbers_.get())) {
    context.random.on_device = &numbers->seed;
  }
  for (size_t i = 0; i < step.node->outputs.size(); ++i) {
    const Accumulation accumulation = step.node->outputs[i].accumulation;
    if (accumulation == Accumulation::kAlways ||
        (accumulation == Accumulation::kOnRequest && options.accumulate)) {
      context.accumulated.insert(i);
    }
  }
  if (step.work == Work::kNothing) return;
  if (step.work == Work::kZero) return ZeroOutputs(context);
  const TraceSpan span(step.layer);
  if (is_profiling_) BeginTiming(index);
  step.node->kernel.run(context);
  if (is_profiling_) EndTiming(index);
  if (options.inspect) options.inspect(*step.node, step.outputs);
}

void Executor::BeginTiming(size_t index) {
  Device& device = *graph_->options.device;
  if (events_.empty()) events_.resize(steps_.size());
  auto& [begin, end] = events_[index];
  if (begin == nullptr) begin = device.MakeEvent(), end = device.MakeEvent();
  device.compute_stream().Record(*begin);
}

void Executor::EndTiming(size_t index) {
  graph_->options.device->compute_stream().Record(*events_[index].second);
  timed_.push_back(index);
}

void Executor::AddTimes() {
  for (const size_t index : timed_) {
    const auto& [begin, end] = events_[index];
    end->Synchronize();
    step_times_[index].seconds += end->SecondsSince(*begin);
    ++step_times_[index].runs;
  }
  timed_.clear();
}

}  // namespace caffe
