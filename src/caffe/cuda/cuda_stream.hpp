// Streams, events and captured graphs of CUDA; each object owns its handle.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/device/stream.hpp"

namespace caffe::cuda {

// Calls the function that destroys a handle. Its status is ignored, because it may report the error
// of an earlier launch, which has already been thrown.
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

// Creates a stream on the calling thread's current device.
std::unique_ptr<Stream> MakeCudaStream();
// With the highest priority: its kernels' blocks go before those that wait in other streams.
std::unique_ptr<Stream> MakeUrgentCudaStream();
std::unique_ptr<Event> MakeCudaEvent(bool is_timed);
// CUDA's default stream of the device that is current on use (the "legacy" one, which synchronises
// with blocking streams and per-thread default streams).
std::unique_ptr<Stream> DefaultCudaStream();

}  // namespace caffe::cuda
