// The part of the CUDA runtime that our kernels and their launches use, executed on the host: if
// this folder comes before the toolkit's, src/caffe/cuda/kernels/*.cu are C++ and run without a
// GPU.
//
// A block's threads run one at a time. Each runs until it waits for others, so a thread that reads
// a value before another thread writes it, or overwrites a value before another thread reads it,
// without a barrier between them, gets a wrong result. A warp whose threads wait for each other
// continues before the next warp runs. Warps run alternately in ascending and descending order.
// Blocks run one after the other, in an order that changes from grid to grid. Only the functions
// that are used exist: one-dimensional grids, static shared memory.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <source_location>
#include <tuple>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
using cudaGraphNode_t = struct CUgraphNode_st*;
enum cudaError_t { cudaSuccess, cudaErrorNotReady = 600 };
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost };
struct cudaPointerAttributes {
  cudaMemoryType type = cudaMemoryTypeUnregistered;
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
struct cudaFuncAttributes {};
inline constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1,
                          cudaEventDisableTiming = 2, cudaStreamNonBlocking = 1,
                          cudaHostAllocMapped = 2;

struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

// Kernels need no loading.
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  return cudaSuccess;
}
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline cudaError_t cudaPeekAtLastError() {
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t) {
  return "no error";
}
cudaError_t cudaMalloc(void** memory, size_t bytes);
template <typename T>
cudaError_t cudaMalloc(T** memory, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
cudaError_t cudaMallocHost(void** memory, size_t bytes);
inline cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return cudaMallocHost(memory, bytes);
}
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory);

// The functions on which src/caffe/cuda/cuda_stream.cpp builds; see streams.cpp.
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

namespace cuda_on_host {

// Does the work when somebody waits for it, or stores it while the stream records; see
// work_queue.hpp. Null is the default stream.
void Submit(cudaStream_t stream, std::function<void()> work);
// Throws unless the stream belongs to the calling thread's device.
void CheckCurrent(cudaStream_t stream);

// Runs thread() once for each thread of the grid.
void RunGrid(const cudaLaunchConfig_t& config, const std::function<void()>& thread);

// The running thread waits for all of its block, or for its warp. Returns when all are at `site`.
enum class Barrier { kBlock, kWarp };
void Wait(Barrier barrier, const std::source_location& site);

// 16 bytes for a lane of the running thread's warp, for the current exchange.
void* ExchangeSlot(unsigned lane);
void NextExchange();

}  // namespace cuda_on_host

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...),
                "a kernel's parameters are copied to the device as bytes");
  const std::tuple<Parameters...> copied(static_cast<Parameters>(arguments)...);
  cuda_on_host::CheckCurrent(config->stream);
  cuda_on_host::Submit(config->stream, [config = *config, kernel, copied] {
    cuda_on_host::RunGrid(config, [&] { std::apply(kernel, copied); });
  });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  cuda_on_host::Submit(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

inline void __syncthreads(const std::source_location& site = std::source_location::current()) {
  cuda_on_host::Wait(cuda_on_host::Barrier::kBlock, site);
}

inline unsigned atomicAdd(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to += value;
  return before;
}
// Counts up to `last` and starts again at 0.
inline unsigned atomicInc(unsigned* to, unsigned last) {
  const unsigned before = *to;
  *to = before >= last ? 0 : before + 1;
  return before;
}
inline int atomicMax(int* to, int value) {
  const int before = *to;
  *to = std::max(before, value);
  return before;
}

// Cycles of a chip of 1 GHz.
inline long long clock64() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Threads see each other's writes immediately.
inline void __threadfence() {}
template <typename T>
T __ldcg(const T* from) {
  return *from;
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int lanes,
                  const std::source_location& site = std::source_location::current()) {
  static_assert(sizeof(T) <= 16);
  const unsigned lane = threadIdx.x % 32;
  cuda_on_host::NextExchange();
  std::memcpy(cuda_on_host::ExchangeSlot(lane), &value, sizeof(T));
  cuda_on_host::Wait(cuda_on_host::Barrier::kWarp, site);
  std::memcpy(&value, cuda_on_host::ExchangeSlot(lane ^ static_cast<unsigned>(lanes)), sizeof(T));
  return value;
}
