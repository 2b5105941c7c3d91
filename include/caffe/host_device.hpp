// Marks functions that run on the side of their caller: formulas and index arithmetic that the host
// and CUDA kernels share.
#pragma once

// Formulas are inlined into loops that are compiled for several instruction sets.
#define CAFFE_FORCE_INLINE __attribute__((always_inline))
#ifdef __CUDACC__
#define CAFFE_HOST_DEVICE __host__ __device__
#else
#define CAFFE_HOST_DEVICE CAFFE_FORCE_INLINE
#endif
