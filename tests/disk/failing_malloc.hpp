// malloc() and related functions that fail on demand. Exactly one file of a program, or of a
// library that is preloaded into one, includes this and defines Fails().
#pragma once

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAFFE_OWN_MALLOC
#endif

namespace caffe::testing {

// Returns whether the current allocation fails.
bool Fails();

inline bool Contains(const char* file, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return std::strstr(file, name) != nullptr; });
}

// True if the memory is requested by code in which no allocation fails, because
// * libhdf5 can lose its defaults ("can't find property in skip list") and then writes no file any
//   more, or recurses without end;
// * libglog and std::filesystem's directory_iterator allocate where they must not throw, and
//   libgomp ends the program without memory, as the loader does for a thread's variables; libdnnl's
//   code generator does not check the result;
// * libpng does not say whether memory or the image was at fault.
inline bool IsSpared() {
  Dl_info own, caller;
  ::dladdr(reinterpret_cast<void*>(&IsSpared), &own);
  void* callers[16];
  const int count = ::backtrace(callers, 16);
  bool is_below = true;  // our callbacks in HDF5 and loops in OpenMP are not spared
  for (int i = 0; i < count; ++i) {
    if (::dladdr(callers[i], &caller) == 0) return false;
    if (Contains(caller.dli_fname, {"/libglog", "/ld-linux", "/libdnnl", "/libpng"})) return true;
    if (caller.dli_sname && Contains(caller.dli_sname, {"directory_iterator"})) return true;
    if (!is_below || caller.dli_fbase == own.dli_fbase) continue;
    if (Contains(caller.dli_fname, {"/libhdf5", "/libgomp"})) return true;
    is_below = Contains(caller.dli_fname, {"/libc.so", "/libstdc++", "/libgcc_s"});
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
  if (caffe::testing::Fails()) return caffe::testing::NoMemory();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  if (caffe::testing::Fails()) return caffe::testing::NoMemory();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  if (caffe::testing::Fails()) return caffe::testing::NoMemory();
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  if (caffe::testing::Fails()) return caffe::testing::NoMemory();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  if (caffe::testing::Fails()) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
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
