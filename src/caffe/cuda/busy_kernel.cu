#include <cuda_runtime.h>

#include "caffe/cuda/busy_kernel.hpp"
#include "caffe/cuda/cuda_check.hpp"

namespace caffe::cuda {
namespace {

__global__ void BusyKernel(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

}  // namespace

void LaunchBusyKernel(double seconds, cudaStream_t stream) {
  constexpr double kCyclesPerSecond = 2e9;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream;
  CAFFE_CUDA_CHECK(
      cudaLaunchKernelEx(&config, BusyKernel, static_cast<long long>(seconds * kCyclesPerSecond)));
}

}  // namespace caffe::cuda
