// Handles of cuDNN. Two threads must not use one at the same time, so each has its own.
#pragma once

#include <cudnn.h>

#include "caffe/cuda/cuda_device.hpp"

namespace caffe::cuda {

// Throws DeviceError unless the status is one of success.
void CheckCudnn(cudnnStatus_t status, const char* call);

// The calling thread's handle for the device, which is current after the call. It goes to another
// thread when this one ends: making one takes a while. Null for a device that is only described.
cudnnHandle_t CudnnHandleOf(CudaDevice& device);

}  // namespace caffe::cuda
