#include "caffe/cpu/processor.hpp"

#include <vector>

namespace caffe::cpu {
namespace {

std::vector<std::string (*)()>& Parts() {
  static std::vector<std::string (*)()> parts;
  return parts;
}

}  // namespace

const char* InstructionSet() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bf16")) return "AVX-512 with BF16";
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE2";
#else
  return "the compiler's baseline";
#endif
}

DescriptionPart::DescriptionPart(std::string (*part)()) {
  Parts().push_back(part);
}

std::string DescriptionParts() {
  std::string text;
  for (std::string (*const part)() : Parts()) text += ", " + part();
  return text;
}

}  // namespace caffe::cpu
