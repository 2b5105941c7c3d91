#include "compat/gpu.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "caffe/common.hpp"
#include "caffe/error.hpp"

namespace caffe::bvlc {
namespace {

thread_local const CallScope* current_call = nullptr;

// Alignment that kernels of plans may rely on.
constexpr uintptr_t kPlannedAlignment = 64;

std::vector<OperandDesc> DescsOf(std::span<const TensorView> operands) {
  std::vector<OperandDesc> descs;
  for (const TensorView& operand : operands) descs.push_back({operand, operand.data != nullptr});
  return descs;
}

struct Buffer {
  std::shared_ptr<void> memory;
  size_t bytes = 0;

  void* Get(Device& gpu, size_t wanted) {
    if (wanted > bytes) {
      memory = nullptr;
      memory = AllocateOn(gpu, wanted);
      bytes = wanted;
    }
    return memory.get();
  }
};

struct Buffers {
  Buffer scratch, workspace;
};
Buffers& BuffersOf(const Device& gpu) {
  thread_local std::map<const Device*, Buffers> buffers;
  return buffers[&gpu];
}

}  // namespace

CallScope::CallScope(Device* gpu) : gpu_(gpu), outer_(std::exchange(current_call, this)) {}
CallScope::~CallScope() {
  current_call = outer_;
}
const CallScope* CallScope::Current() {
  return current_call;
}

Device& CurrentGpu() {
  if (current_call != nullptr && current_call->gpu() != nullptr) return *current_call->gpu();
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<Device>> devices;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Device>& device = devices[::caffe::Caffe::device()];
  if (device == nullptr) device = MakeDevice(DeviceKind::kCuda, ::caffe::Caffe::device());
  return *device;
}

// The device zeroes memory on its compute stream, so wait for it.
std::shared_ptr<void> AllocateOn(Device& gpu, size_t bytes) {
  std::shared_ptr<void> memory = gpu.Allocate(bytes);
  gpu.compute_stream().Synchronize();
  return memory;
}

void CopyOn(Device& gpu, void* to, const void* from, size_t bytes) {
  if (to == from || bytes == 0) return;
  gpu.MakeCurrent();
  gpu.default_stream().Copy(to, from, bytes);
  gpu.default_stream().Synchronize();
}

void* ScratchOn(Device& gpu, size_t bytes) {
  return BuffersOf(gpu).scratch.Get(gpu, bytes);
}

TensorView PlainView(const Shape& shape, DType dtype, const void* data) {
  TensorView view;
  view.shape = shape;
  view.dtype = dtype;
  view.data = const_cast<void*>(data);
  return view;
}

bool AreAligned(std::span<const TensorView> operands) {
  return std::ranges::all_of(operands, [](const TensorView& operand) {
    return reinterpret_cast<uintptr_t>(operand.data) % kPlannedAlignment == 0;
  });
}

Kernel KernelOn(Device& gpu, const Op& op, std::span<const TensorView> inputs,
                std::span<const TensorView> outputs) {
  const std::vector<OperandDesc> in = DescsOf(inputs), out = DescsOf(outputs);
  const bool is_aligned = AreAligned(inputs) && AreAligned(outputs);
  const DType dtype = outputs[0].dtype;
  const Signature signature{dtype, dtype == DType::kDouble ? dtype : DType::kFloat};
  std::string reasons;
  for (const KernelCandidate& candidate : KernelRegistry::Get().Candidates(gpu.kind(), op.type())) {
    if (!candidate.Serves(signature)) continue;
    if (!is_aligned && candidate.rank != KernelRank::kReference) continue;
    KernelOrRefusal answer = candidate.factory(
        {.op = op, .inputs = in, .outputs = out, .device = gpu, .settings = {.strict_fp32 = true}});
    if (Kernel* kernel = std::get_if<Kernel>(&answer)) return std::move(*kernel);
    reasons += StrCat("; ", candidate.name, ": ", std::get<Refusal>(answer).reason);
  }
  throw Unsupported(
      StrCat("no kernel for ", op.name(), " in ", Name(dtype), " on the GPU", reasons));
}

void RunOn(Device& gpu, const Kernel& kernel, std::span<const TensorView> inputs,
           std::span<const TensorView> outputs, OperandSet accumulated) {
  gpu.MakeCurrent();
  KernelContext context;
  context.inputs = inputs;
  context.outputs = outputs;
  context.workspace = BuffersOf(gpu).workspace.Get(gpu, kernel.workspace_bytes);
  context.stream = &gpu.default_stream();
  context.accumulated = accumulated;
  kernel.run(context);
}

}  // namespace caffe::bvlc
