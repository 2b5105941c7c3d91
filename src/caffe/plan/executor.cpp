#include "caffe/plan/executor.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "caffe/core/activity.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/error.hpp"
#include "caffe/plan/operand_guard.hpp"
#include "caffe/plan/weight_parts.hpp"
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

std::string NameOfSegment(const Program& program, size_t first, size_t last) {
  if (first == last) return "The update's steps";
  const std::string& begin = program.steps[first].where;
  const std::string& end = program.steps[last - 1].where;
  return begin == end ? StrCat("The steps of ", begin)
                      : StrCat("The steps from ", begin, " to ", end);
}

void ZeroOutputs(const KernelContext& context) {
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    const TensorView& output = context.outputs[i];
    if (output.data == nullptr || context.accumulates(static_cast<int>(i))) continue;
    context.stream->FillZero(output.data, output.bytes());
  }
}

}  // namespace

Executor::Executor(std::shared_ptr<const Program> program)
    : program_(std::move(program)),
      memory_(program_),
      copies_(program_, &memory_),
      segments_(*program_->device),
      profiler_(*program_->device, program_->steps.size()) {}

void Executor::Bind(Bindings bindings) {
  memory_.Bind(std::move(bindings));
}

std::vector<SyncedTensor*> Executor::Gradients() const {
  std::vector<SyncedTensor*> gradients;
  for (const Program::Step& step : program_->steps) {
    for (const int gradient : step.final_gradients) gradients.push_back(bindings()[gradient]);
  }
  return gradients;
}

ProgramMemory::Blocks Executor::ReleaseMemory() {
  ForgetSegments();
  return memory_.Release();
}

void Executor::Prepare(const RunOptions& options) {
  Device& device = *program_->device;
  device.MakeCurrent();
  memory_.Allocate();
  if (!device.is_host_accessible() && pass_numbers_ == nullptr)
    pass_numbers_ = device.Allocate(sizeof(PassNumbers));
  if (memory_.Refresh()) ForgetSegments();
  SendPassNumbers(options);
}

void Executor::UpdateCopies(const RunOptions& options) {
  const Launch launch{options, program_->device->compute_stream()};
  if (copies_.FindOutdated()) ForgetSegments();
  copies_.Update([&](size_t copy) { MakeCopy(copy, launch); });
}

void Executor::MakeCopy(size_t copy, const Launch& launch) {
  AtStep(program_->steps[copy], [&] { RunCopy(copy, launch); });
}

// Weights that are not in memory are cast and packed in parts if they can be, and brought into
// memory for other copies.
void Executor::RunCopy(size_t copy, const Launch& launch) {
  Device& device = *program_->device;
  const Program::Step& step = program_->steps[copy];
  const WeightParts parts(*program_, bindings(), copy);
  if (!parts) copies_.MakeSources(copy, [&](size_t source) { MakeCopy(source, launch); });
  const ProgramMemory::CopyOperands operands(&memory_, copy, /*keeps_inputs_away=*/!!parts);
  KernelContext context = ContextOf(copy, launch);
  if (parts) return parts.Make(context);
  std::shared_ptr<void> workspace;  // ends before the operands
  if (static_cast<int64_t>(step.kernel.workspace_bytes) > program_->workspace_bytes) {
    workspace = device.Allocate(step.kernel.workspace_bytes);
    context.workspace = workspace.get();
  }
  RunStep(copy, context, launch);
  if (workspace && !device.is_host_accessible()) device.Synchronize();
}

void Executor::PrepareCopies() {
  const RunOptions options;
  Prepare(options);
  UpdateCopies(options);
}

void Executor::ShareCopies(Executor& other) {
  other.PrepareCopies();
  if (program_->device->is_host_accessible()) copies_.ShareWith(other.copies_);
  PrepareCopies();
}

void Executor::ForgetSegments() {
  segments_.Forget();
  is_settled_ = false;
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
  return (runs_both || step.direction == *options.direction) &&
         step.starts_at >= options.first_layer && step.starts_at <= last;
}

std::optional<Executor::ShapeChange> Executor::Run(const RunOptions& options) {
  Prepare(options);
  std::optional<uint64_t> appended_work;
  if (options.appended != nullptr) appended_work = options.appended->Prepare();
  if (segments_.Prepare(options.loss_scale, appended_work)) is_settled_ = false;
  std::optional<ShapeChange> change;
  try {
    UpdateCopies(options);
    change = RunPart(options);
  } catch (...) {
    memory_.MarkOutputsWritten();  // some outputs have been written
    throw;
  }
  memory_.MarkOutputsWritten();
  if (options.appended != nullptr && !change) options.appended->Finish();
  return change;
}

std::optional<Executor::ShapeChange> Executor::RunPart(const RunOptions& options) {
  const std::vector<Program::Step>& steps = program_->steps;
  const auto is_part = [&](size_t step) { return IsPartOf(steps[step], options); };
  // Awaited gradients end a segment, so that waiting for them does not include later steps.
  const auto ends = [&](size_t step) {
    return options.listener != nullptr &&
           std::ranges::any_of(steps[step].final_gradients, [&](int gradient) {
             return options.listener->is_awaited(*bindings()[gradient]);
           });
  };
  const size_t begin = program_->copies.size();
  size_t end = steps.size();  // of the run
  while (end > begin && !is_part(end - 1)) --end;
  AppendedWork* appended = options.appended;
  std::optional<ShapeChange> change;
  segments_.BeginRun();
  // Lets the host run ahead, so that step times do not include the time to launch.
  if (profiler_.is_on()) program_->device->compute_stream().KeepBusy(1e-3);
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
    const Launch launch{options, program_->device->compute_stream()};
    AtStep(steps[i], [&] { found = RunStep(i, launch); });
    if (found.empty()) {
      ReportGradients(i, options);
    } else {
      change = {steps[i].layer, std::move(found)};
    }
  }
  if (appended != nullptr && !change) RunSegment(end, end, appended, options);
  if (profiler_.is_on()) profiler_.AddUp();
  if (options.listener != nullptr) is_settled_ = !segments_.is_loading() && !change;
  return change;
}

void Executor::RunSteps(size_t first, size_t last, AppendedWork* appended, const Launch& launch) {
  for (size_t i = first; i < last; ++i) {
    if (const int loop = program_->steps[i].loop; loop >= 0) {
      RunRounds(program_->loops[loop], launch);
      i = program_->loops[loop].last - 1;
      continue;
    }
    AtStep(program_->steps[i], [&] { RunStep(i, launch); });
    if (!launch.is_capture) ReportGradients(i, launch.options);
  }
  if (appended != nullptr) appended->Launch(launch.stream);
}

void Executor::RunRounds(const Program::Loop& loop, const Launch& launch) {
  for (int64_t round = 0; round < loop.batch.rounds(); ++round) {
    const ProgramMemory::RoundOperands operands(&memory_, loop, round);
    for (size_t i = loop.first; i < loop.last; ++i)
      AtStep(program_->steps[i], [&] { RunStep(i, launch); });
    if (profiler_.is_on()) profiler_.AddUp();
  }
}

void Executor::RunSegment(size_t first, size_t last, AppendedWork* appended,
                          const RunOptions& options) {
  const bool may_capture = !profiler_.is_on() && !options.inspect && program_->records_steps;
  const auto run = [&](Stream& stream, bool is_capture) {
    RunSteps(first, last, appended, {options, stream, is_capture});
  };
  const auto name = [&] { return NameOfSegment(*program_, first, last); };
  // By reference, because a std::function of so many captures would allocate memory.
  const bool was_replayed = segments_.Run({first, last, options.accumulate, appended != nullptr},
                                          may_capture, std::ref(run), std::ref(name));
  if (!was_replayed) return;
  for (size_t i = first; i < last; ++i) ReportGradients(i, options);
}

void Executor::ReportGradients(size_t step, const RunOptions& options) const {
  if (options.listener == nullptr) return;
  for (const int gradient : program_->steps[step].final_gradients)
    options.listener->on_final(*bindings()[gradient]);
  if (!options.listener->on_updatable) return;
  for (const int gradient : program_->steps[step].updatable_gradients)
    options.listener->on_updatable(*bindings()[gradient]);
}

std::set<int> Executor::AliveBefore(int layer) const {
  std::set<int> written, alive;
  bool is_before = true;
  for (size_t i = program_->copies.size(); i < program_->steps.size(); ++i) {
    const Program::Step& step = program_->steps[i];
    is_before = is_before && !(step.direction == Direction::kForward && step.starts_at >= layer);
    const auto whole = [&](int tensor) {
      const bool is_part = tensor >= 0 && program_->tensors[tensor].whole >= 0;
      return is_part ? program_->tensors[tensor].whole : tensor;
    };
    if (is_before) {
      for (const int output : step.outputs) written.insert(whole(output));
    } else {
      for (const int input : step.inputs) {
        if (written.count(whole(input)) > 0) alive.insert(whole(input));
      }
    }
  }
  return alive;
}

void Executor::TakeOver(const Executor& previous, int layer) {
  memory_.Allocate();
  program_->device->Synchronize();
  // Copies only tensors that are alive at that point: the memory of others may be reused.
  memory_.CopyFrom(previous.memory_, AliveBefore(layer));
}

KernelContext Executor::ContextOf(size_t index, const Launch& launch) const {
  const Program::Step& step = program_->steps[index];
  KernelContext context;
  context.inputs = memory_.inputs(index);
  context.outputs = memory_.outputs(index);
  context.workspace = memory_.workspace();
  context.stream = &launch.stream;
  context.random = launch.options.random;
  context.loss_scale = launch.options.loss_scale;
  if (const auto* numbers = static_cast<const PassNumbers*>(pass_numbers_.get())) {
    context.random.on_device = &numbers->seed;
  }
  context.accumulated = step.always_accumulated;
  if (launch.options.accumulate) context.accumulated.insert(step.accumulated_on_request);
  return context;
}

std::vector<Shape> Executor::RunStep(size_t index, const Launch& launch) {
  return RunStep(index, ContextOf(index, launch), launch);
}

std::vector<Shape> Executor::RunStep(size_t index, KernelContext context, const Launch& launch) {
  Activity::ReportProgress();
  const Program::Step& step = program_->steps[index];
  std::vector<Shape> new_top_shapes;
  context.new_top_shapes = &new_top_shapes;
  if (step.work == Program::Work::kNothing) return {};
  if (step.work == Program::Work::kZero) return ZeroOutputs(context), std::vector<Shape>{};
  const TraceSpan span(step.layer_name);
  if (profiler_.is_on()) profiler_.Begin(index);
  {
    const OperandGuard guard(program_->device->is_host_accessible() ? memory_.arena() : nullptr,
                             memory_.arena_bytes(), context);
    step.kernel.run(context);
  }
  if (profiler_.is_on()) profiler_.End(index);
  if (launch.options.inspect && new_top_shapes.empty())
    launch.options.inspect(step, memory_.outputs(index));
  return new_top_shapes;
}

}  // namespace caffe
