// Declares the C library's vector versions of functions, so that loops that call them vectorise:
// glibc 2.35 on x86-64, errors of at most 4 units in the last place. math.h declares them only with
// the whole of -ffast-math.
#pragma once

#include <cmath>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
#define CAFFE_SIMD_MATH(name)                                                    \
  extern "C" __attribute__((simd("notinbranch"))) float name##f(float) noexcept; \
  extern "C" __attribute__((simd("notinbranch"))) double name(double) noexcept;
CAFFE_SIMD_MATH(cos)
CAFFE_SIMD_MATH(erf)
CAFFE_SIMD_MATH(erfc)
CAFFE_SIMD_MATH(exp)
CAFFE_SIMD_MATH(log)
CAFFE_SIMD_MATH(sin)
CAFFE_SIMD_MATH(tanh)
#undef CAFFE_SIMD_MATH
#endif
#endif
