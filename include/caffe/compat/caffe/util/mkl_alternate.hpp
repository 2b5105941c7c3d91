// The CBLAS names that signatures use, for programs without cblas.h.
#pragma once

#if defined(__has_include)
#if __has_include(<cblas.h>)
#include <cblas.h>
#define CAFFE_HAS_CBLAS_HEADER
#endif
#endif

#ifndef CAFFE_HAS_CBLAS_HEADER
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 };
#endif
