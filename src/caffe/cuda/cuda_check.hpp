// Statuses of the CUDA runtime turned into exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include "caffe/error.hpp"

namespace caffe::cuda {

// Throws DeviceError: the call, what it returned, and what the user can do about it.
[[noreturn]] void ThrowCudaError(cudaError_t status, const char* call);

inline void CheckCuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) [[unlikely]]
    ThrowCudaError(status, call);
}

}  // namespace caffe::cuda

// CAFFE_CUDA_CHECK(cudaMemsetAsync(p, 0, bytes, stream));
#define CAFFE_CUDA_CHECK(call) ::caffe::cuda::CheckCuda((call), #call)
// After a launch with <<<>>>: an invalid configuration, or an error that is already known.
#define CAFFE_CUDA_CHECK_LAUNCH() ::caffe::cuda::CheckCuda(cudaGetLastError(), "kernel launch")
