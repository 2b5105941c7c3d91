// CAFFE_ADDRESS_SANITIZER: 1 in builds with AddressSanitizer (preset asan), else 0. Includes its
// interface in such builds.
#pragma once

#if defined(__has_feature)
#define CAFFE_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define CAFFE_ADDRESS_SANITIZER 1
#else
#define CAFFE_ADDRESS_SANITIZER 0
#endif

#if CAFFE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif
