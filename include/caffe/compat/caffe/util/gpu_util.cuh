// Device functions for kernels of layers written for Caffe.
#pragma once

#include "../bvlc_namespace.hpp"

CAFFE_BVLC_BEGIN
// Adds val to *address atomically; returns the old value.
template <typename Dtype>
inline __device__ Dtype caffe_gpu_atomic_add(const Dtype val, Dtype* address) {
  return atomicAdd(address, val);
}

CAFFE_BVLC_END
