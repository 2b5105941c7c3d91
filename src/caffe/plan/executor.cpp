#include "caffe/plan/executor.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "caffe/core/activity.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/device/timed_event.hpp"
#include "caffe/error.hpp"
#include "caffe/plan/operand_guard.hpp"
#include "caffe/tensor/synced_tensor.hpp"
#include "caffe/trace.hpp"

namespace caffe {
namespace {

// Prefixes the step's place to errors of fn(), except to faults of earlier work.
template <typename Fn>
void AtStep(const Program::Step& step, const Fn& fn) {
  std::exception_ptr fault;
  WithContext(step.where, [&] {
    try {
      fn();
    } catch (const DeviceFault&) {
      fault = std::current_exception();
    }
  });
  if (fault) std::rethrow_exception(fault);
}

std::string StretchOf(const Program& program, size_t first, size_t last) {
  if (first == last) return "The update's steps";
  const std::string& begin = program.steps[first].where;
  const std::string& end = program.steps[last - 1].where;
  return begin == end ? StrCat("The steps of ", begin)
                      : StrCat("The steps from ", begin, " to ", end);
}

}  // namespace

Executor::Executor(std::shared_ptr<const Program> program)
    : program_(std::move(program)),
      made_of_(program_->copies.size()),
      operands_(program_->steps.size()),
      step_times_(program_->steps.size()) {}

void Executor::Bind(Bindings bindings) {
  CAFFE_ASSERT(bindings.size() == program_->tensors.size());
  bindings_ = std::move(bindings);
  if (arena_) BindOperands();
}

std::vector<SyncedTensor*> Executor::Gradients() const {
  std::vector<SyncedTensor*> gradients;
  for (const Program::Step& step : program_->steps) {
    for (const int gradient : step.final_gradients) gradients.push_back(bindings_[gradient]);
  }
  return gradients;
}

std::vector<Executor::KeptCopy> Executor::KeptCopies() const {
  std::vector<KeptCopy> kept;
  if (program_->device->is_host_accessible()) return kept;
  for (const Program::Copy& copy : program_->copies) {
    const bool is_conversion = copy.weights.size() == 1 && copy.results.size() == 1;
    if (copy.is_read && is_conversion)
      kept.push_back({bindings_[copy.weights[0]], bindings_[copy.results[0]]});
  }
  return kept;
}

bool Executor::IsMade(const KeptCopy& copy) const {
  const std::vector<uint64_t> current = {copy.weights->version()};
  for (size_t i = 0; i < made_of_.size(); ++i) {
    if (bindings_[program_->copies[i].results[0]] == copy.copy && made_of_[i] == current)
      return true;
  }
  return false;
}

void Executor::MarkMade(const KeptCopy& copy) {
  for (size_t i = 0; i < made_of_.size(); ++i) {
    if (bindings_[program_->copies[i].results[0]] == copy.copy)
      made_of_[i] = {copy.weights->version()};
  }
}

// Asks for each version once per run, because versions of held memory change with each call.
void Executor::MakeCopies(const RunOptions& options) {
  versions_.resize(program_->tensors.size());
  for (const Program::Copy& copy : program_->copies) {
    for (const int weights : copy.weights) versions_[weights] = 0;
  }
  for (const Program::Copy& copy : program_->copies) {
    for (const int weights : copy.weights) {
      if (versions_[weights] == 0) versions_[weights] = bindings_[weights]->version();
    }
  }
  DetachStaleCopies();
  for (size_t i = 0; i < made_of_.size(); ++i) {
    if (program_->copies[i].is_read) MakeCopy(i, options);
  }
}

bool Executor::IsCurrent(size_t copy) const {
  return std::ranges::equal(program_->copies[copy].weights, made_of_[copy], {},
                            [&](int weights) { return versions_[weights]; });
}

void Executor::DetachStaleCopies() {
  bool has_detached = false;
  for (size_t i = 0; i < made_of_.size(); ++i) {
    if (IsCurrent(i)) continue;
    for (const int result : program_->copies[i].results) {
      if (!bindings_[result]->is_shared()) continue;
      bindings_[result]->Detach();
      has_detached = true;
    }
  }
  if (has_detached) RefreshBoundOperands();
}

void Executor::MakeCopy(size_t index, const RunOptions& options) {
  const Program::Copy& copy = program_->copies[index];
  if (IsCurrent(index)) return;
  for (const int source : copy.sources) MakeCopy(static_cast<size_t>(source), options);
  AtStep(program_->steps[index], [&] { RunStep(index, options); });
  made_of_[index].clear();
  for (const int weights : copy.weights) made_of_[index].push_back(versions_[weights]);
}

void Executor::Allocate() {
  Device& device = *program_->device;
  Memory memory = std::exchange(offered_, {});
  const auto take = [&](std::shared_ptr<void>* mine, int64_t* mine_bytes,
                        const std::shared_ptr<void>& offered, int64_t offered_bytes,
                        int64_t needed) {
    const bool serves = offered != nullptr && offered_bytes >= needed;
    *mine_bytes = serves ? offered_bytes : needed;
    *mine = serves ? offered : device.Allocate(static_cast<size_t>(needed));
  };
  take(&arena_, &arena_bytes_, memory.arena, memory.arena_bytes, program_->arena_bytes);
  take(&workspace_, &workspace_bytes_, memory.workspace, memory.workspace_bytes,
       program_->workspace_bytes);
  if (!device.is_host_accessible() && pass_numbers_ == nullptr)
    pass_numbers_ = device.Allocate(sizeof(PassNumbers));
  BindOperands();
}

Executor::Memory Executor::ReleaseMemory() {
  ForgetRecordings();
  if (!arena_) return std::exchange(offered_, {});
  return {std::exchange(arena_, nullptr), std::exchange(workspace_, nullptr),
          std::exchange(arena_bytes_, 0), std::exchange(workspace_bytes_, 0)};
}

void Executor::PrepareCopies() {
  program_->device->MakeCurrent();
  if (!arena_) Allocate();
  RefreshBoundOperands();
  const RunOptions options;
  SendPassNumbers(options);
  MakeCopies(options);
}

void Executor::ShareCopies(Executor& other) {
  PrepareCopies();
  other.PrepareCopies();
  if (!program_->device->is_host_accessible()) return;
  const auto results_of = [](const Executor& executor) {
    std::vector<SyncedTensor*> results;
    for (const Program::Copy& copy : executor.program_->copies) {
      for (const int result : copy.results) results.push_back(executor.bindings_[result]);
    }
    return results;
  };
  const std::vector<SyncedTensor*> mine = results_of(*this), theirs = results_of(other);
  for (size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i)
    mine[i]->ShareIfEqual(*theirs[i]);
}

void Executor::ForgetCopies() {
  for (std::vector<uint64_t>& versions : made_of_) versions.clear();
}

void Executor::BindOperands() {
  bound_.clear();
  const auto bind = [&](const std::vector<int>& tensors, std::vector<TensorView>* views,
                        bool is_output) {
    views->assign(tensors.size(), {});
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i] < 0) continue;
      const Program::Tensor& tensor = program_->tensors[tensors[i]];
      if (tensor.arena_offset >= 0) {
        (*views)[i] = ArenaView(tensors[i]);
        continue;
      }
      SyncedTensor* const memory = bindings_[tensors[i]];
      CAFFE_ASSERT(memory != nullptr, "'", tensor.name, "' has no memory");
      (*views)[i] = {tensor.desc, nullptr};
      bound_.push_back({&(*views)[i], memory, tensor.bound_offset, is_output});
    }
  };
  for (size_t i = 0; i < operands_.size(); ++i) {
    bind(program_->steps[i].inputs, &operands_[i].inputs, false);
    bind(program_->steps[i].outputs, &operands_[i].outputs, true);
  }
}

void Executor::RefreshBoundOperands() {
  bool has_moved = false;
  for (BoundOperand& operand : bound_) {
    void* const data = static_cast<char*>(operand.tensor->data()) + operand.offset;
    has_moved |= operand.view->data != data;
    operand.view->data = data;
  }
  if (has_moved) ForgetRecordings();  // captured graphs keep their addresses
}

void Executor::ForgetRecordings() {
  segments_.clear();
  is_settled_ = false;
}

void Executor::DropRecordingsOfOtherLossScale(const RunOptions& options) {
  if (options.loss_scale != recorded_loss_scale_) ForgetRecordings();
  recorded_loss_scale_ = options.loss_scale;
}

void Executor::PrepareAppended(const RunOptions& options) {
  if (options.appended == nullptr) return;
  const uint64_t work = options.appended->Prepare();
  if (work != recorded_work_) ForgetRecordings();
  recorded_work_ = work;
}

void Executor::SendPassNumbers(const RunOptions& options) {
  if (pass_numbers_ == nullptr) return;
  const PassNumbers numbers{options.random.seed, options.random.pass};
  program_->device->compute_stream().CopyFromHost(pass_numbers_.get(), &numbers, sizeof(numbers));
}

bool Executor::IsPartOf(const Program::Step& step, const RunOptions& options) const {
  const int last = options.last_layer < 0 ? program_->num_layers - 1 : options.last_layer;
  const bool runs_both = !options.direction;
  if (runs_both && step.direction == Direction::kBackward) return true;
  return (runs_both || step.direction == *options.direction) && step.layer >= options.first_layer &&
         step.layer <= last;
}

std::optional<Executor::ShapeChange> Executor::Run(const RunOptions& options) {
  program_->device->MakeCurrent();
  if (!arena_) Allocate();
  RefreshBoundOperands();
  DropRecordingsOfOtherLossScale(options);
  PrepareAppended(options);
  SendPassNumbers(options);
  std::optional<ShapeChange> change;
  try {
    MakeCopies(options);
    change = RunPart(options);
  } catch (...) {
    MarkOutputsWritten();  // some outputs have been written
    throw;
  }
  MarkOutputsWritten();
  if (options.appended != nullptr && !change) options.appended->Finish();
  return change;
}

void Executor::MarkOutputsWritten() {
  for (const BoundOperand& operand : bound_) {
    if (operand.is_output) operand.tensor->MarkWritten();
  }
}

std::optional<Executor::ShapeChange> Executor::RunPart(const RunOptions& options) {
  const std::vector<Program::Step>& steps = program_->steps;
  const auto is_part = [&](size_t step) { return IsPartOf(steps[step], options); };
  // Awaited gradients end a segment, so that waiting for them does not include later steps.
  const auto ends = [&](size_t step) {
    return options.listener != nullptr &&
           std::ranges::any_of(steps[step].final_gradients, [&](int gradient) {
             return options.listener->is_awaited(*bindings_[gradient]);
           });
  };
  const size_t begin = program_->copies.size();
  size_t end = steps.size();  // of the run
  while (end > begin && !is_part(end - 1)) --end;
  AppendedWork* appended = options.appended;
  std::optional<ShapeChange> change;
  is_loading_ = false;
  // Lets the host run ahead, so that step times do not include the time to launch.
  if (is_profiling_) program_->device->compute_stream().KeepBusy(1e-3);
  for (size_t i = begin; i < end && !change; ++i) {
    if (!is_part(i)) continue;
    if (!steps[i].calls_host) {
      const size_t first = i;
      while (i + 1 < end && is_part(i + 1) && !steps[i + 1].calls_host && !ends(i)) ++i;
      const bool is_last = i + 1 == end;
      RunSegment(first, i + 1, is_last ? std::exchange(appended, nullptr) : nullptr, options);
      continue;
    }
    std::vector<Shape> found;
    AtStep(steps[i], [&] { found = RunStep(i, options); });
    if (found.empty()) {
      ReportGradients(i, options);
    } else {
      change = {steps[i].layer, std::move(found)};
    }
  }
  if (appended != nullptr && !change) RunSegment(end, end, appended, options);
  if (is_profiling_) AddTimes();
  if (options.listener != nullptr) is_settled_ = !is_loading_ && !change;
  return change;
}

void Executor::RunSteps(size_t first, size_t last, AppendedWork* appended,
                        const RunOptions& options) {
  for (size_t i = first; i < last; ++i) {
    AtStep(program_->steps[i], [&] { RunStep(i, options); });
    if (!is_capturing_) ReportGradients(i, options);
  }
  if (appended != nullptr) appended->Launch(stream());
}

void Executor::RunSegment(size_t first, size_t last, AppendedWork* appended,
                          const RunOptions& options) {
  Stream& stream = program_->device->compute_stream();
  // CPU kernels need no loading.
  if (!stream.can_capture() && program_->device->is_host_accessible())
    return RunSteps(first, last, appended, options);
  Segment& segment = segments_[{first, last, options.accumulate, appended != nullptr}];
  // In their first run, kernels may still upload tables and load code.
  const bool is_first = !std::exchange(segment.has_run, true);
  is_loading_ |= is_first;
  const bool can_record = stream.can_capture() && !is_profiling_ && !options.inspect &&
                          program_->records_steps && !segment.cannot_be_recorded;
  if (is_first || !can_record) return RunSteps(first, last, appended, options);
  if (segment.recorded == nullptr) {
    is_loading_ = true;
    segment.recorded = Record(first, last, appended, options);
  }
  if (segment.recorded == nullptr) {
    segment.cannot_be_recorded = true;
    return RunSteps(first, last, appended, options);
  }
  stream.Launch(*segment.recorded);
  for (size_t i = first; i < last; ++i) ReportGradients(i, options);
}

void Executor::ReportGradients(size_t step, const RunOptions& options) const {
  if (options.listener == nullptr) return;
  for (const int gradient : program_->steps[step].final_gradients)
    options.listener->on_final(*bindings_[gradient]);
  if (!options.listener->on_updatable) return;
  for (const int gradient : program_->steps[step].updatable_gradients)
    options.listener->on_updatable(*bindings_[gradient]);
}

// Returns null if a step cannot be captured, or memory for the graph is lacking.
std::unique_ptr<CapturedGraph> Executor::Record(size_t first, size_t last, AppendedWork* appended,
                                                const RunOptions& options) {
  try {
    if (capture_stream_ == nullptr) capture_stream_ = program_->device->MakeStream();
    capture_stream_->BeginCapture();
    is_capturing_ = true;
    RunSteps(first, last, appended, options);
    return EndCapture();
  } catch (const DeviceFault&) {
    AbandonCapture();
    throw;
  } catch (const DeviceError& error) {
    AbandonCapture();
    refused_because_ = error.what();
    const std::string warning =
        StrCat(StretchOf(*program_, first, last),
               " run one by one, which takes longer than one launch: ", refused_because_);
    LOG_IF(WARNING, warned_.insert(warning).second) << warning;
    return nullptr;
  } catch (...) {
    AbandonCapture();
    throw;
  }
}

Executor::Captured Executor::captured() const {
  Captured captured;
  for (const auto& [key, segment] : segments_) {
    captured.refused += segment.cannot_be_recorded;
    if (segment.recorded == nullptr) continue;
    ++captured.stretches;
    captured.nodes += segment.recorded->num_nodes();
  }
  if (captured.refused > 0) captured.reason = refused_because_;
  return captured;
}

std::unique_ptr<CapturedGraph> Executor::EndCapture() {
  is_capturing_ = false;
  return capture_stream_->EndCapture();
}

// The error that is being thrown matters, not one from the abandoned capture.
void Executor::AbandonCapture() noexcept {
  if (!is_capturing_) return;
  try {
    EndCapture();
  } catch (const DeviceError&) {
  }
}

Stream& Executor::stream() const {
  return is_capturing_ ? *capture_stream_ : program_->device->compute_stream();
}

std::map<std::string, int> Executor::ArenaTensors() const {
  std::map<std::string, int> versions, tensors;
  for (size_t i = 0; i < program_->tensors.size(); ++i) {
    const Program::Tensor& tensor = program_->tensors[i];
    const std::string name = StrCat(tensor.name, '#', versions[tensor.name]++);
    if (tensor.arena_offset >= 0) tensors[name] = static_cast<int>(i);
  }
  return tensors;
}

TensorView Executor::ArenaView(int tensor) const {
  const Program::Tensor& placed = program_->tensors[tensor];
  return {placed.desc, static_cast<char*>(arena_.get()) + placed.arena_offset};
}

std::set<int> Executor::AliveBefore(int layer) const {
  std::set<int> written, alive;
  bool is_before = true;
  for (size_t i = program_->copies.size(); i < program_->steps.size(); ++i) {
    const Program::Step& step = program_->steps[i];
    is_before = is_before && !(step.direction == Direction::kForward && step.layer >= layer);
    if (is_before) {
      written.insert(step.outputs.begin(), step.outputs.end());
    } else {
      for (const int input : step.inputs) {
        if (written.count(input) > 0) alive.insert(input);
      }
    }
  }
  return alive;
}

void Executor::TakeOver(const Executor& previous, int layer) {
  if (!arena_) Allocate();
  Device& device = *program_->device;
  device.Synchronize();
  // Copies only tensors that are alive at that point: the memory of others may be reused.
  const std::set<int> alive = AliveBefore(layer);
  const std::map<std::string, int> theirs = previous.ArenaTensors();
  std::vector<char> from, to;
  for (const auto& [name, tensor] : ArenaTensors()) {
    const auto found = theirs.find(name);
    if (alive.count(tensor) == 0 || found == theirs.end()) continue;
    const TensorView source = previous.ArenaView(found->second), target = ArenaView(tensor);
    CAFFE_ASSERT(source.count() == target.count(), name);
    from.resize(source.bytes());
    to.resize(target.bytes());
    device.CopyToHost(from.data(), source.data, from.size());
    CopyTensor({source, from.data()}, {target, to.data()});
    device.CopyFromHost(target.data, to.data(), to.size());
  }
}

void Executor::ZeroOutputs(const KernelContext& context) {
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    const TensorView& output = context.outputs[i];
    if (output.data == nullptr || context.accumulates(static_cast<int>(i))) continue;
    context.stream->FillZero(output.data, output.bytes());
  }
}

std::vector<Shape> Executor::RunStep(size_t index, const RunOptions& options) {
  Activity::ReportProgress();
  const Program::Step& step = program_->steps[index];
  std::vector<Shape> new_top_shapes;
  KernelContext context;
  context.inputs = operands_[index].inputs;
  context.outputs = operands_[index].outputs;
  context.workspace = workspace_.get();
  context.stream = &stream();
  context.random = options.random;
  context.loss_scale = options.loss_scale;
  context.new_top_shapes = &new_top_shapes;
  if (const auto* numbers = static_cast<const PassNumbers*>(pass_numbers_.get())) {
    context.random.on_device = &numbers->seed;
  }
  context.accumulated = step.always_accumulated;
  if (options.accumulate) context.accumulated.insert(step.accumulated_on_request);
  if (step.work == Program::Work::kNothing) return {};
  if (step.work == Program::Work::kZero) return ZeroOutputs(context), std::vector<Shape>{};
  const TraceSpan span(step.layer_name);
  if (is_profiling_) BeginTiming(index);
  {
    const OperandGuard guard(program_->device->is_host_accessible() ? arena_.get() : nullptr,
                             static_cast<size_t>(arena_bytes_), context);
    step.kernel.run(context);
  }
  if (is_profiling_) EndTiming(index);
  if (options.inspect && new_top_shapes.empty()) options.inspect(step, operands_[index].outputs);
  return new_top_shapes;
}

void Executor::BeginTiming(size_t index) {
  Device& device = *program_->device;
  if (events_.empty()) events_.resize(program_->steps.size());
  auto& [begin, end] = events_[index];
  if (begin == nullptr) begin = MakeTimedEvent(device), end = MakeTimedEvent(device);
  device.compute_stream().Record(*begin);
}

void Executor::EndTiming(size_t index) {
  program_->device->compute_stream().Record(*events_[index].second);
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
