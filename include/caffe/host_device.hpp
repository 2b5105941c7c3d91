// Marks functions that run wherever their caller does: formulas and index arithmetic that the host
// and the kernels of a CUDA device share.
#pragma once

// Formulas are inlined into loops that are compiled for several instruction sets.
#define CAFFE_FORCE_INLINE __attribute__((always_inline))
#ifdef __CUDACC__
#define CAFFE_HOST_DEVICE __host__ __device__
#else
#define CAFFE_HOST_DEVICE CAFFE_FORCE_INLINE
#endif
