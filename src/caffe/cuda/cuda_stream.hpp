// Streams, events and captured graphs of CUDA, each owning its handle.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/device/stream.hpp"

namespace caffe::cuda {

// A handle and the call that destroys it. What the call returns is not looked at: it may report the
// error of an earlier launch, which has been thrown already.
template <typename Handle, cudaError_t (*Destroy)(Handle)>
struct HandleDeleter {
  using pointer = Handle;
  void operator()(Handle handle) const { Destroy(handle); }
};
template <typename Handle, cudaError_t (*Destroy)(Handle)>
using UniqueHandle = std::unique_ptr<Handle, HandleDeleter<Handle, Destroy>>;

using StreamHandle = UniqueHandle<cudaStream_t, cudaStreamDestroy>;
using EventHandle = UniqueHandle<cudaEvent_t, cudaEventDestroy>;
using GraphHandle = UniqueHandle<cudaGraph_t, cudaGraphDestroy>;
using GraphExecHandle = UniqueHandle<cudaGraphExec_t, cudaGraphExecDestroy>;

// On the calling thread's current device.
std::unique_ptr<Stream> MakeCudaStream();
std::unique_ptr<Event> MakeCudaEvent(bool is_timed);
// CUDA's own of the device that is current when it is used (the "legacy" one, with which blocking
// streams and those of single threads synchronise).
std::unique_ptr<Stream> DefaultCudaStream();

}  // namespace caffe::cuda
