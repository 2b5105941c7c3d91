// malloc() and its kin that fail on demand. The one file of a program, or of a library that is
// preloaded into one, that includes this defines Fails().
#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAFFE_OWN_MALLOC
#endif

namespace caffe::testing {

// Whether the allocation that is asked for at this place of the code fails.
bool Fails(const void* caller);

// Whether the code belongs to a library to which no allocation fails, because
// * libhdf5 can lose its defaults ("can't find property in skip list") and then writes no file any
//   more, or calls itself without end;
// * libgomp, and the loader for a thread's variables, end the program;
// * libpng does not say whether memory or the image was at fault.
inline bool IsSpared(const void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  for (const char* name : {"/libhdf5", "/libgomp", "/ld-linux", "/libpng"}) {
    if (std::strstr(info.dli_fname, name) != nullptr) return true;
  }
  return false;
}

inline void* NoMemory() {
  errno = ENOMEM;
  return nullptr;
}

}  // namespace caffe::testing

#ifdef CAFFE_OWN_MALLOC
extern "C" {

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) noexcept {
  if (caffe::testing::Fails(__builtin_return_address(0))) return caffe::testing::NoMemory();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  if (caffe::testing::Fails(__builtin_return_address(0))) return caffe::testing::NoMemory();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  if (caffe::testing::Fails(__builtin_return_address(0))) return caffe::testing::NoMemory();
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  if (caffe::testing::Fails(__builtin_return_address(0))) return caffe::testing::NoMemory();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  if (caffe::testing::Fails(__builtin_return_address(0))) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
// Here because the C library's own would hide who calls it.
char* strdup(const char* text) noexcept {
  if (caffe::testing::Fails(__builtin_return_address(0))) return nullptr;
  const size_t size = std::strlen(text) + 1;
  void* const copy = __libc_malloc(size);
  return copy ? static_cast<char*>(std::memcpy(copy, text, size)) : nullptr;
}

// No power is cut here; waiting for the disk thousands of times would take minutes.
int fsync(int) {
  return 0;
}
int fdatasync(int) {
  return 0;
}
int msync(void*, size_t, int) {
  return 0;
}

}  // extern "C"
#endif
