#include "caffe/runtime/context.hpp"

#include <omp.h>

#include <algorithm>

#include "caffe/core/threads_for_now.hpp"
#include "caffe/error.hpp"

namespace caffe::runtime {
namespace {

std::vector<OperandDesc> Describe(const std::vector<int>& numbers, const ProgramFile& file) {
  std::vector<OperandDesc> operands;
  for (const int number : numbers) {
    OperandDesc& operand = operands.emplace_back();
    operand.present = number >= 0;
    if (number < 0) continue;
    const ProgramFile::Tensor& tensor = file.tensors[static_cast<size_t>(number)];
    static_cast<TensorDesc&>(operand) = tensor.desc;
    operand.may_be_packed = operand.is_constant = tensor.offset < 0;
  }
  return operands;
}

Kernel Find(const ProgramFile::Step& step, const ProgramFile& file, Device& device) {
  const std::vector<OperandDesc> inputs = Describe(step.inputs, file);
  const std::vector<OperandDesc> outputs = Describe(step.outputs, file);
  std::string tried;
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(device.kind(), step.op.type())) {
    // The fastest kernel may not support the epilogue that a file requires.
    if (!candidate.Serves(step.op, step.signature)) continue;
    KernelOrRefusal answer = candidate.factory({step.op, inputs, outputs, device, {}});
    if (Kernel* kernel = std::get_if<Kernel>(&answer)) return std::move(*kernel);
    tried += StrCat("; ", candidate.name, ": ", std::get<Refusal>(answer).reason);
  }
  throw Unsupported(StrCat(step.where, ": this build has no kernel for ", step.op.name(), " of ",
                           Name(step.signature.data), tried));
}

}  // namespace

Context::Context(ProgramFile file)
    : program_(std::make_shared<LoadedProgram>(std::move(file))),
      device_(MakeDevice(DeviceKind::kCpu)) {
  program_->threads = omp_get_max_threads();
  CountUses();
  Prepare();
}

Context::Context(const Context& other) : program_(other.program_), device_(other.device_) {
  const ThreadsForNow threads(program_->threads);
  Prepare();
}

Context::~Context() = default;

void Context::Prepare() {
  const ProgramFile& file = program_->file;
  activations_ = device_->Allocate(static_cast<size_t>(file.activation_bytes));
  size_t workspace_bytes = 0;
  for (size_t i = 0; i < file.steps.size(); ++i) {
    steps_.push_back(WithContext(file.steps[i].where, [&] { return Choose(i); }));
    workspace_bytes = std::max(workspace_bytes, steps_.back().kernel.workspace_bytes);
  }
  for (const int output : file.outputs) Unfold(output);
  workspace_ = device_->Allocate(workspace_bytes);
}

void Context::Unfold(int tensor) {
  if (tensor < 0) return;
  ProgramFile::Tensor& of = program_->file.tensors[static_cast<size_t>(tensor)];
  if (!of.rows) return;
  of.constant = Unfolded(of);
  of.rows.reset();
}

std::shared_ptr<void> Context::Unfolded(const ProgramFile::Tensor& tensor) const {
  const std::shared_ptr<void> floats = device_->Allocate(tensor.desc.bytes());
  DecodeWeights(*tensor.rows, tensor.constant.get(), tensor.desc.count(),
                static_cast<float*>(floats.get()));
  return floats;
}

TensorView Context::View(int tensor) const {
  TensorView view;
  if (tensor < 0) return view;
  const ProgramFile::Tensor& of = program_->file.tensors[static_cast<size_t>(tensor)];
  static_cast<TensorDesc&>(view) = of.desc;
  // Kernels write only to activations, so the cast is safe.
  view.data = of.offset < 0 ? const_cast<void*>(of.constant.get())
                            : static_cast<char*>(activations_.get()) + of.offset;
  return view;
}

Context::Step Context::Choose(size_t index) {
  const ProgramFile::Step& planned = program_->file.steps[index];
  Step step{Find(planned, program_->file, *device_), {}, {}};
  if (step.kernel.packed_weights && step.kernel.packed_weights->in_each_pass)
    step.kernel = PackingItself(std::move(step.kernel));
  const int packed = step.kernel.packed_weights ? step.kernel.packed_weights->operand : -1;
  for (size_t i = 0; i < planned.inputs.size(); ++i) {
    if (static_cast<int>(i) != packed) Unfold(planned.inputs[i]);
    step.inputs.push_back(View(planned.inputs[i]));
  }
  for (const int output : planned.outputs) step.outputs.push_back(View(output));
  if (step.kernel.packed_weights) Pack(index, step.kernel, &step);
  return step;
}

void Context::Pack(size_t index, const Kernel& kernel, Step* step) {
  LoadedProgram::Packed& packed = program_->packed[index];
  const PackedOperand& wanted = *kernel.packed_weights;
  TensorView& weights = step->inputs[static_cast<size_t>(wanted.operand)];
  TensorView bytes;
  bytes.shape = Shape{static_cast<int64_t>(wanted.bytes)};
  bytes.dtype = DType::kUInt8;
  if (packed.bytes == nullptr) {
    packed = {wanted.operand, device_->Allocate(wanted.bytes), wanted.bytes};
    bytes.data = packed.bytes.get();
    const int number = program_->file.steps[index].inputs[static_cast<size_t>(wanted.operand)];
    const ProgramFile::Tensor& plain = program_->file.tensors[static_cast<size_t>(number)];
    const std::shared_ptr<void> floats = plain.rows ? Unfolded(plain) : nullptr;
    if (floats) weights.data = floats.get();
    const std::shared_ptr<void> workspace = device_->Allocate(wanted.workspace_bytes);
    KernelContext context;
    context.inputs = {&weights, 1};
    context.outputs = {&bytes, 1};
    context.workspace = workspace.get();
    context.stream = &device_->compute_stream();
    wanted.convert(context);
    EndUse(number);
  }
  CAFFE_ASSERT(packed.size == wanted.bytes && packed.operand == wanted.operand, packed.size);
  bytes.data = packed.bytes.get();
  weights = bytes;
}

void Context::CountUses() {
  const ProgramFile& file = program_->file;
  program_->uses.assign(file.tensors.size(), 1);  // the one that this function ends
  const auto add = [&](const std::vector<int>& tensors) {
    for (const int tensor : tensors) {
      if (tensor >= 0) ++program_->uses[static_cast<size_t>(tensor)];
    }
  };
  for (const ProgramFile::Step& step : file.steps) add(step.inputs);
  add(file.outputs);
  for (size_t i = 0; i < file.tensors.size(); ++i) EndUse(static_cast<int>(i));
}

void Context::EndUse(int tensor) {
  const auto index = static_cast<size_t>(tensor);
  if (--program_->uses[index] == 0) program_->file.tensors[index].constant.reset();
}

size_t Context::num_inputs() const {
  return program_->file.inputs.size();
}

size_t Context::num_outputs() const {
  return program_->file.outputs.size();
}

const std::string& Context::input_name(size_t i) const {
  return program_->file.tensors[static_cast<size_t>(program_->file.inputs.at(i))].name;
}

const std::string& Context::output_name(size_t i) const {
  return program_->file.tensors[static_cast<size_t>(program_->file.outputs.at(i))].name;
}

TensorView Context::input(size_t i) const {
  return View(program_->file.inputs.at(i));
}

TensorView Context::output(size_t i) const {
  return View(program_->file.outputs.at(i));
}

void Context::RunStep(const Step& step) const {
  KernelContext context;
  context.inputs = step.inputs;
  context.outputs = step.outputs;
  context.workspace = workspace_.get();
  context.stream = &device_->compute_stream();
  step.kernel.run(context);
}

void Context::Run() {
  const ThreadsForNow threads(program_->threads);
  for (size_t i = 0; i < steps_.size(); ++i)
    WithContext(program_->file.steps[i].where, [&] { RunStep(steps_[i]); });
}

}  // namespace caffe::runtime
