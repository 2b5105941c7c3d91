// Handles of cuDNN. Two threads must not use one at the same time, so each thread has its own.
#pragma once

#include <cudnn.h>

#include "caffe/cuda/cuda_device.hpp"

namespace caffe::cuda {

// Throws DeviceError unless the status is success.
void CheckCudnn(cudnnStatus_t status, const char* call);

// Returns the calling thread's handle for the device, which becomes current. Handles of ended
// threads are reused, because creating one takes a while. Null for a device that is only described.
cudnnHandle_t CudnnHandleOf(CudaDevice& device);

}  // namespace caffe::cuda
