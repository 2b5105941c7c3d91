// Where the names of Caffe's C++ API live: caffe::bvlc, which is inline for those who include these
// headers, so that they write caffe::Net<float>. The library that implements them sees Cortado's
// own caffe::Net as well and keeps the two apart.
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
