// Host memory that a device copies to and from by itself.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "caffe/cuda/cuda_check.hpp"

namespace caffe::cuda {

// Not zeroed. Throws DeviceError when there is none.
inline std::shared_ptr<void> AllocatePinned(size_t bytes) {
  void* memory = nullptr;
  CAFFE_CUDA_CHECK(cudaMallocHost(&memory, bytes == 0 ? 1 : bytes));
  return {memory, [](void* p) { cudaFreeHost(p); }};
}

}  // namespace caffe::cuda
