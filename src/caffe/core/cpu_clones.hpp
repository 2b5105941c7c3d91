// CAFFE_CPU_CLONES: one function, the best instruction set of the processor that runs it.
#pragma once

// Compiles a function for several instruction sets; the loader picks the best this CPU has.
// Sanitizers cannot instrument the resolver, and clang knows no clones of templates, so their
// builds have the baseline only.
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    !defined(__x86_64__)
#define CAFFE_CPU_CLONES
#else
#define CAFFE_CPU_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
