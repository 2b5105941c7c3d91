// The GPU of Caffe's API: which one it is, and work on it outside of any plan. The work is on the
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

  // The innermost one of the calling thread; null: none.
  static const CallScope* Current();
  Device* gpu() const { return gpu_; }

 private:
  Device* gpu_;
  const CallScope* outer_;
};

// The GPU of the layer's call in this thread, otherwise that of Caffe::SetDevice. Throws
// Unsupported in a build without GPUs, DeviceError where there is none.
Device& CurrentGpu();

// Zeros, which work on the default stream may read.
std::shared_ptr<void> AllocateOn(Device& gpu, size_t bytes);
// Between memories of any kind, and waits until the copy is done.
void CopyOn(Device& gpu, void* to, const void* from, size_t bytes);
// The thread's memory for the results of single calls; they are there until it is next asked for.
void* ScratchOn(Device& gpu, size_t bytes);

// Row-major elements.
TensorView PlainView(const Shape& shape, DType dtype, const void* data);

// Whether the operands lie as those of plans do, which the fastest kernels ask for.
bool AreAligned(std::span<const TensorView> operands);
// The device's kernel for an op on such operands, in the types that these have.
Kernel KernelOn(Device& gpu, const Op& op, std::span<const TensorView> inputs,
                std::span<const TensorView> outputs);
void RunOn(Device& gpu, const Kernel& kernel, std::span<const TensorView> inputs,
           std::span<const TensorView> outputs, OperandSet accumulated = {});

}  // namespace caffe::bvlc
