// Host memory for direct copies to and from a device.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "caffe/cuda/cuda_check.hpp"

namespace caffe::cuda {

// The memory is not zeroed. Throws DeviceError if there is not enough.
inline std::shared_ptr<void> AllocatePinned(size_t bytes) {
  void* memory = nullptr;
  CAFFE_CUDA_CHECK(cudaMallocHost(&memory, bytes == 0 ? 1 : bytes));
  return {memory, [](void* p) { cudaFreeHost(p); }};
}

}  // namespace caffe::cuda
