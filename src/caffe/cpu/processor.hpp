// Features of the processor that the process runs on.
#pragma once

#include <string>

#include "caffe/common.hpp"

namespace caffe::cpu {

// Instructions that kernels are compiled for, or that oneDNN uses.
struct Instructions {
  bool avx2 = false;
  bool avx512 = false;
  bool bfloat16 = false;       // AVX512-BF16
  bool half = false;           // AVX512-FP16
  bool tiles = false;          // AMX
  bool may_use_tiles = false;  // the system saves tiles at a switch between threads
};
CAFFE_EXPORT Instructions InstructionsOfThisProcessor();

// "AVX-512 with BF16 and FP16, AMX".
CAFFE_EXPORT std::string NameOf(const Instructions& instructions);

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
