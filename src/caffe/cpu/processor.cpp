#include "caffe/cpu/processor.hpp"

#include <vector>

namespace caffe::cpu {
namespace {

std::vector<std::string (*)()>& Parts() {
  static std::vector<std::string (*)()> parts;
  return parts;
}

}  // namespace

#ifdef __x86_64__
// Kernels are registered before main() begins, so each asks for the processor's features itself.
const char* InstructionSet() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bf16")) return "AVX-512 with BF16";
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE2";
}

bool HasWideVectors() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("x86-64-v4") != 0;
}

bool MultipliesBFloat16() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16") != 0;
}
#else
bool HasWideVectors() {
  return false;
}

const char* InstructionSet() {
  return "the compiler's baseline";
}

bool MultipliesBFloat16() {
  return false;
}
#endif

DescriptionPart::DescriptionPart(std::string (*part)()) {
  Parts().push_back(part);
}

std::string DescriptionParts() {
  std::string text;
  for (std::string (*const part)() : Parts()) text += ", " + part();
  return text;
}

}  // namespace caffe::cpu
