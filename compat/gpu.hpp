// The current GPU of Caffe's API, and operations on it outside of any plan. They run on the
// device's default stream, because code for Caffe launches there.
#pragma once

#include <memory>
#include <span>

#include "caffe/device/device.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::bvlc {

// While it exists, the thread runs a layer's code for a net on that GPU; null: on the processor.
class CallScope {
 public:
  explicit CallScope(Device* gpu);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // Returns the innermost scope of the calling thread, or null.
  static const CallScope* Current();
  Device* gpu() const { return gpu_; }

 private:
  Device* gpu_;
  const CallScope* outer_;
};

// Returns the GPU of the layer call in this thread, or else that of Caffe::SetDevice. Throws
// Unsupported in a build without GPUs, DeviceError if there is no such GPU.
Device& CurrentGpu();

// Allocates zeroed memory that can be used on the default stream.
std::shared_ptr<void> AllocateOn(Device& gpu, size_t bytes);
// Copies between host and device memory in any direction and waits for the copy.
void CopyOn(Device& gpu, void* to, const void* from, size_t bytes);
// The thread's memory for results of single calls; valid until the next call.
void* ScratchOn(Device& gpu, size_t bytes);

// A view of row-major elements.
TensorView PlainView(const Shape& shape, DType dtype, const void* data);

// True if the operands are aligned like those of plans, which the fastest kernels require.
bool AreAligned(std::span<const TensorView> operands);
// Returns the device's kernel for an op on such operands, in their types.
Kernel KernelOn(Device& gpu, const Op& op, std::span<const TensorView> inputs,
                std::span<const TensorView> outputs);
void RunOn(Device& gpu, const Kernel& kernel, std::span<const TensorView> inputs,
           std::span<const TensorView> outputs, OperandSet accumulated = {});

}  // namespace caffe::bvlc
