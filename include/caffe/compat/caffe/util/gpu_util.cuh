// What kernels of layers written for Caffe call.
#pragma once

#include "../bvlc_namespace.hpp"

CAFFE_BVLC_BEGIN
// *address += val; returns what was there before.
template <typename Dtype>
inline __device__ Dtype caffe_gpu_atomic_add(const Dtype val, Dtype* address) {
  return atomicAdd(address, val);
}

CAFFE_BVLC_END
