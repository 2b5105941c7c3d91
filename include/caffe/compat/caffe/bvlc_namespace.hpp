// Defines the namespace of Caffe's C++ API: caffe::bvlc. It is inline for programs that include
// these headers, so that they write caffe::Net<float>. The library that implements the API also
// sees Cortado's own caffe::Net and keeps the two apart.
#pragma once

#ifdef CAFFE_COMPAT_IMPLEMENTATION
#define CAFFE_BVLC_BEGIN \
  namespace caffe {      \
  namespace bvlc {
#else
#define CAFFE_BVLC_BEGIN \
  namespace caffe {      \
  inline namespace bvlc {
#endif

#define CAFFE_BVLC_END \
  }                    \
  }
