// Powers by the GPU's logarithm and exponential, each one instruction and accurate to 22 bits: in
// float the result is wrong by a few units in the last place.
#pragma once

#include <cmath>

#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

__device__ inline double Log2(double x) {
  return std::log2(x);
}
__device__ inline double Exp2(double x) {
  return std::exp2(x);
}

#ifdef __CUDA_ARCH__
__device__ inline float Log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
__device__ inline float Log2(float x) {
  return std::log2(x);
}
__device__ inline float Exp2(float x) {
  return std::exp2(x);
}
#endif

// scale^-beta by exact functions; beta = 0.75, as in AlexNet and GoogLeNet, needs two square roots
// instead of a power.
template <typename A>
__device__ inline A InversePower(A scale, A beta) {
  if (beta != A(0.75)) return std::pow(scale, -beta);
  const A root = std::sqrt(scale);
  return A(1) / (root * std::sqrt(root));
}

}  // namespace caffe::cuda
