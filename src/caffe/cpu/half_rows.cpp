#include "caffe/cpu/half_rows.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {
namespace {

template <typename From, typename To>
CAFFE_CPU_CLONES void ConvertEach(const From* __restrict x, To* __restrict y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = To(static_cast<float>(x[i]));
}

#ifdef __x86_64__
// One instruction where the vectorized arithmetic of float16 takes a dozen.
__attribute__((target("avx,f16c"))) void ConvertByF16c(const float16* x, float* y, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(half));
  }
  for (; i < count; ++i) y[i] = static_cast<float>(x[i]);
}

__attribute__((target("avx,f16c"))) void ConvertByF16c(const float* x, float16* y, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), half);
  }
  for (; i < count; ++i) y[i] = float16(x[i]);
}

// clang 16's __builtin_cpu_supports does not know f16c.
bool CpuidHasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

template <typename From, typename To>
void ConvertHalf(const From* x, To* y, int64_t count) {
  static const bool has_f16c = CpuidHasF16c() && __builtin_cpu_supports("avx") != 0;
  has_f16c ? ConvertByF16c(x, y, count) : ConvertEach(x, y, count);
}
#else
template <typename From, typename To>
void ConvertHalf(const From* x, To* y, int64_t count) {
  ConvertEach(x, y, count);
}
#endif

}  // namespace

void ConvertRow(const float16* x, float* y, int64_t count) {
  ConvertHalf(x, y, count);
}
void ConvertRow(const bfloat16* x, float* y, int64_t count) {
  ConvertEach(x, y, count);
}
void ConvertRow(const float* x, float16* y, int64_t count) {
  ConvertHalf(x, y, count);
}
void ConvertRow(const float* x, bfloat16* y, int64_t count) {
  ConvertEach(x, y, count);
}

}  // namespace caffe::cpu
