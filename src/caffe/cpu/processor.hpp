// Features of the processor that the process runs on.
#pragma once

#include <string>

#include "caffe/common.hpp"

namespace caffe::cpu {

// Kernels are registered before main() begins, so these functions query the features themselves.
#ifdef __x86_64__
// True for AVX-512: 32 registers of 16 floats each.
inline bool HasWideVectors() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("x86-64-v4") != 0;
}
// True if the processor multiplies bfloat16 natively.
inline bool MultipliesBFloat16() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16") != 0;
}
#else
inline bool HasWideVectors() {
  return false;
}
inline bool MultipliesBFloat16() {
  return false;
}
#endif

// Libraries that kernels use register here; their names and versions become part of the device's
// description.
struct DescriptionPart {
  explicit DescriptionPart(std::string (*part)());
};
std::string DescriptionParts();

}  // namespace caffe::cpu
