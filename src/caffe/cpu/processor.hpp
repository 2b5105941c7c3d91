// What the processor that runs this can do.
#pragma once

#include <string>

namespace caffe::cpu {

// "AVX-512 with BF16": the widest that kernels are compiled for.
const char* InstructionSet();

// Kernels are registered before main() begins, so each asks for the processor's features itself.
#ifdef __x86_64__
// Whether a register holds 16 floats and there are 32 of them (AVX-512).
inline bool HasWideVectors() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("x86-64-v4") != 0;
}
// Whether it multiplies numbers of type bfloat16 by itself.
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

// What kernels are built on adds its name and version to the device's description.
struct DescriptionPart {
  explicit DescriptionPart(std::string (*part)());
};
std::string DescriptionParts();

}  // namespace caffe::cpu
