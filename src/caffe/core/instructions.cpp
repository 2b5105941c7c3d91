#include "caffe/core/instructions.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace caffe {

#ifdef __x86_64__
namespace {

// Asks for permission, as everything that uses tiles must (Linux, Documentation/arch/x86/xstate).
// Old kernels, and containers whose filter of system calls does not know the request, refuse.
bool SystemSavesTiles() {
  constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

}  // namespace
#endif

Instructions InstructionsOfThisProcessor() {
  Instructions has;
#ifdef __x86_64__
  __builtin_cpu_init();
  has.avx2 = __builtin_cpu_supports("avx2");
  has.avx512 = __builtin_cpu_supports("avx512f");
  has.bfloat16 = __builtin_cpu_supports("avx512bf16");
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (has.avx512 && __get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    has.half = (d >> 23 & 1) != 0;
    has.tiles = (d >> 24 & 1) != 0;
  }
  has.may_use_tiles = has.tiles && SystemSavesTiles();
#endif
  return has;
}

std::string NameOf(const Instructions& instructions) {
#ifndef __x86_64__
  if (!instructions.avx2) return "the compiler's baseline";
#endif
  if (!instructions.avx512) return instructions.avx2 ? "AVX2" : "SSE2";
  std::string name = "AVX-512";
  if (instructions.bfloat16) name += " with BF16";
  if (instructions.half) name += instructions.bfloat16 ? " and FP16" : " with FP16";
  if (!instructions.tiles) return name;
  return name + (instructions.may_use_tiles ? ", AMX" : ", AMX (not used: the system refuses it)");
}

}  // namespace caffe
