// A kernel that only takes time.
#pragma once

#include <cuda_runtime_api.h>

namespace caffe::cuda {

// Runs for at least `seconds` on a chip of up to 2 GHz.
void LaunchBusyKernel(double seconds, cudaStream_t stream);

}  // namespace caffe::cuda
