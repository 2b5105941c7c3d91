// Statuses of the CUDA runtime turned into exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include "caffe/error.hpp"

namespace caffe::cuda {

// Throws DeviceError: the call, what it returned, and what the user can do about it. DeviceFault
// for errors of work that was launched before, which any call may return, unless
// CUDA_LAUNCH_BLOCKING=1 makes launches wait for their work.
[[noreturn]] void ThrowCudaError(cudaError_t status, const char* call);

inline void CheckCuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) [[unlikely]]
    ThrowCudaError(status, call);
}

inline constexpr const char* kNoMemoryAdvice =
    "lower batch_size (caffe plan shows what a net needs), or free the device";

// Whether the device serves this process no more after the error.
bool IsFault(cudaError_t status);

// Whether launches wait for their work: CUDA_LAUNCH_BLOCKING=1 in the environment. Nothing is
// captured then, so that an error is that of the step that launches.
bool AreLaunchesBlocking();

// Forgets the thread's last error, unless the device is lost with it.
void ForgetCudaError();

}  // namespace caffe::cuda

// CAFFE_CUDA_CHECK(cudaMemsetAsync(p, 0, bytes, stream));
#define CAFFE_CUDA_CHECK(call) ::caffe::cuda::CheckCuda((call), #call)
