// Selects GPU or CPU. Programs for Caffe are compiled with CPU_ONLY where there is no GPU; a
// library that was built without GPUs defines it by itself.
#pragma once

#include "build_options.hpp"

// A layer without GPU code. In a net on a GPU it runs on the processor: blobs copy their values on
// access.
#define STUB_GPU_FORWARD(classname, funcname)                                 \
  template <typename Dtype>                                                   \
  void classname<Dtype>::funcname##_##gpu(const vector<Blob<Dtype>*>& bottom, \
                                          const vector<Blob<Dtype>*>& top) {  \
    this->funcname##_##cpu(bottom, top);                                      \
  }

#define STUB_GPU_BACKWARD(classname, funcname)                                  \
  template <typename Dtype>                                                     \
  void classname<Dtype>::funcname##_##gpu(const vector<Blob<Dtype>*>& top,      \
                                          const vector<bool>& propagate_down,   \
                                          const vector<Blob<Dtype>*>& bottom) { \
    this->funcname##_##cpu(top, propagate_down, bottom);                        \
  }

#define STUB_GPU(classname)            \
  STUB_GPU_FORWARD(classname, Forward) \
  STUB_GPU_BACKWARD(classname, Backward)

#ifdef CPU_ONLY

#define NO_GPU LOG(FATAL) << "Cannot use GPU in CPU-only Caffe: check mode."

#else

#include <cuda_runtime.h>

#if defined(CUDART_VERSION) && __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define CAFFE_HAS_CUBLAS_HEADER

#define CUBLAS_CHECK(condition)                                       \
  do {                                                                \
    const cublasStatus_t cublas_check_status = (condition);           \
    CHECK_EQ(cublas_check_status, CUBLAS_STATUS_SUCCESS)              \
        << " " << ::caffe::cublasGetErrorString(cublas_check_status); \
  } while (0)
#endif

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

// Number of blocks of CAFFE_CUDA_NUM_THREADS threads for n elements.
inline int CAFFE_GET_BLOCKS(const int n) {
  return (n + CAFFE_CUDA_NUM_THREADS - 1) / CAFFE_CUDA_NUM_THREADS;
}

#ifdef CAFFE_HAS_CUBLAS_HEADER
inline const char* cublasGetErrorString(cublasStatus_t status) {
  return cublasGetStatusString(status);
}
#endif

CAFFE_BVLC_END

#endif
