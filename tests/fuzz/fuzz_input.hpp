// Common code of fuzz targets. FUZZ_TARGET(name) { ... return 0; } in name_fuzz.cpp defines a
// target, which reads `size` bytes at `data`. Built with the preset `fuzz` it is a libFuzzer
// program; otherwise fuzz_replay finds it by its name.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "caffe/error.hpp"

#ifdef CAFFE_LIBFUZZER
#define FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
#else
#define FUZZ_TARGET(name)                                                                          \
  static int name##_target(const uint8_t* data, size_t size);                                      \
  static const bool name##_is_known = caffe::fuzz::Targets().emplace(#name, name##_target).second; \
  static int name##_target(const uint8_t* data, size_t size)
#endif

namespace caffe::fuzz {

using Target = int (*)(const uint8_t* data, size_t size);

inline std::map<std::string, Target>& Targets() {
  static std::map<std::string, Target> targets;
  return targets;
}

// The input as a file that only this process can see.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view contents) : descriptor_(memfd_create("input", 0)) {
    if (descriptor_ < 0) std::abort();
    for (size_t done = 0; done < contents.size();) {
      const ssize_t count = write(descriptor_, contents.data() + done, contents.size() - done);
      if (count <= 0) std::abort();
      done += static_cast<size_t>(count);
    }
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

// Runs `fn`. Bad input may only cause a user error: our own InternalError and any foreign exception
// end the process, which the fuzzer reports.
template <typename Fn>
int Try(Fn&& fn) {
  try {
    fn();
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
  return 0;
}

inline std::string_view View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace caffe::fuzz
