// A kernel that takes its time.
#pragma once

#include <cuda_runtime_api.h>

namespace caffe::cuda {

// Runs for at least that long on a chip of up to 2 GHz. Seconds.
void LaunchBusyKernel(double seconds, cudaStream_t stream);

}  // namespace caffe::cuda
