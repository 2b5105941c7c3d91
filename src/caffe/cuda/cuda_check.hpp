// Converts statuses of the CUDA runtime to exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include "caffe/error.hpp"

namespace caffe::cuda {

// Throws DeviceError: the call, its status, and advice for the user. Throws DeviceFault for errors
// of asynchronous work launched earlier, which any call may return, unless CUDA_LAUNCH_BLOCKING=1
// makes launches wait for their work.
[[noreturn]] void ThrowCudaError(cudaError_t status, const char* call);

inline void CheckCuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) [[unlikely]]
    ThrowCudaError(status, call);
}

inline constexpr const char* kNoMemoryAdvice =
    "lower batch_size (caffe plan shows what a net needs), or free the device";

// True if the device cannot be used by this process any more after the error.
bool IsFault(cudaError_t status);

// True with CUDA_LAUNCH_BLOCKING=1 in the environment: launches wait for their work. Nothing is
// captured then, so that an error belongs to the step that launches.
bool AreLaunchesBlocking();

// Clears the thread's last error, unless the device is lost with it.
void ForgetCudaError();

}  // namespace caffe::cuda

// CAFFE_CUDA_CHECK(cudaMemsetAsync(p, 0, bytes, stream));
#define CAFFE_CUDA_CHECK(call) ::caffe::cuda::CheckCuda((call), #call)
