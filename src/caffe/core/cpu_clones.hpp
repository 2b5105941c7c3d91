// CAFFE_CPU_CLONES: compiles a function for several instruction sets and picks one at load time.
#pragma once

// The loader picks the best version that this CPU supports. Sanitizers cannot instrument the
// resolver, and clang cannot clone templates, so their builds have only the baseline.
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    !defined(__x86_64__)
#define CAFFE_CPU_CLONES
#else
#define CAFFE_CPU_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
