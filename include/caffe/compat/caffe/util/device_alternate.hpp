// GPU or not. CPU_ONLY is what programs for Caffe are compiled with where there is no GPU; a
// library that was built without GPUs defines it by itself.
#pragma once

#include "build_options.hpp"

#ifdef CPU_ONLY

#define NO_GPU LOG(FATAL) << "Cannot use GPU in CPU-only Caffe: check mode."

#define STUB_GPU_FORWARD(classname, funcname)                            \
  template <typename Dtype>                                              \
  void classname<Dtype>::funcname##_##gpu(const vector<Blob<Dtype>*>&,   \
                                          const vector<Blob<Dtype>*>&) { \
    NO_GPU;                                                              \
  }

#define STUB_GPU_BACKWARD(classname, funcname)                                              \
  template <typename Dtype>                                                                 \
  void classname<Dtype>::funcname##_##gpu(const vector<Blob<Dtype>*>&, const vector<bool>&, \
                                          const vector<Blob<Dtype>*>&) {                    \
    NO_GPU;                                                                                 \
  }

#define STUB_GPU(classname)            \
  STUB_GPU_FORWARD(classname, Forward) \
  STUB_GPU_BACKWARD(classname, Backward)

#else

#include <cuda_runtime.h>

#define CUDA_CHECK(condition)                                                               \
  do {                                                                                      \
    const cudaError_t cuda_check_error = (condition);                                       \
    CHECK_EQ(cuda_check_error, cudaSuccess) << " " << cudaGetErrorString(cuda_check_error); \
  } while (0)

#define CUDA_KERNEL_LOOP(i, n) \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)

#define CUDA_POST_KERNEL_CHECK CUDA_CHECK(cudaPeekAtLastError())

#include "../bvlc_namespace.hpp"

CAFFE_BVLC_BEGIN
const int CAFFE_CUDA_NUM_THREADS = 512;

// Blocks of that many threads for n elements.
inline int CAFFE_GET_BLOCKS(const int n) {
  return (n + CAFFE_CUDA_NUM_THREADS - 1) / CAFFE_CUDA_NUM_THREADS;
}

CAFFE_BVLC_END

#endif
