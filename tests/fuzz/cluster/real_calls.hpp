// The system's own functions, which simulated_calls.cpp replaces.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

namespace caffe::fuzz {

template <typename Function>
Function* RealCall(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

#define CAFFE_REAL(name)                                                       \
  ([] {                                                                        \
    static const auto real = ::caffe::fuzz::RealCall<decltype(::name)>(#name); \
    return real;                                                               \
  }())

}  // namespace caffe::fuzz
