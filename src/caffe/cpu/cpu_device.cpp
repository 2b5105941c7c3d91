#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "caffe/core/address_sanitizer.hpp"
#include "caffe/core/available_memory.hpp"
#include "caffe/core/instructions.hpp"
#include "caffe/core/processors.hpp"
#include "caffe/cpu/processor.hpp"
#include "caffe/device/device.hpp"
#include "caffe/error.hpp"

namespace caffe::cpu {
namespace {

std::string ModelName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

// OpenMP counts processors but ignores limits of CPU time, which more threads would only exhaust
// sooner. The number of threads is a per-thread setting: it is set once per thread, unless the user
// has chosen one.
void TakeUsableProcessors() {
  thread_local bool is_done = false;
  if (std::exchange(is_done, true) || std::getenv("OMP_NUM_THREADS") != nullptr) return;
  const int usable = UsableProcessors();
  if (omp_get_max_threads() == omp_get_num_procs() && usable < omp_get_num_procs())
    omp_set_num_threads(usable);
}

class CpuDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string description() const override {
    return StrCat(ModelName(), ", ", num_threads(), " threads, ",
                  NameOf(InstructionsOfThisProcessor()), DescriptionParts());
  }
  int num_threads() const override { return omp_get_max_threads(); }
  void MakeCurrent() override { TakeUsableProcessors(); }

  // Anonymous pages are zeroed and cost nothing until touched; large allocations use huge pages.
  std::shared_ptr<void> Allocate(size_t bytes) override {
    if (bytes == 0) bytes = 1;
    if (bytes < kSmallBytes) {
      void* memory = nullptr;
      if (posix_memalign(&memory, 64, bytes) != 0) ThrowOutOfMemory(bytes);
      std::memset(memory, 0, bytes);
      return {memory, std::free};
    }
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) ThrowOutOfMemory(bytes);
    madvise(memory, bytes, MADV_HUGEPAGE);
    return {memory, [bytes](void* p) { munmap(p, bytes); }};
  }

  std::optional<size_t> FreeBytes() override { return AvailableMemory(); }
  bool is_host_accessible() const override { return true; }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    std::copy_n(static_cast<const char*>(device), bytes, static_cast<char*>(host));
  }
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    std::copy_n(static_cast<const char*>(host), bytes, static_cast<char*>(device));
  }
  void Synchronize() override {}

 private:
  // With AddressSanitizer, all memory comes from malloc, so that overruns are detected.
  static constexpr size_t kSmallBytes = CAFFE_ADDRESS_SANITIZER ? SIZE_MAX : 1 << 20;

  [[noreturn]] static void ThrowOutOfMemory(size_t bytes) {
    throw DeviceError(StrCat("cpu: out of memory asking for ", bytes / (1 << 20),
                             " MiB; lower batch_size (caffe plan shows what a net needs)"));
  }
};

// For code that divides work among threads before it makes a device.
const bool main_thread_is_limited = (TakeUsableProcessors(), true);

const DeviceRegistrar registrar(DeviceKind::kCpu, {.make = [](int) -> std::shared_ptr<Device> {
                                                     TakeUsableProcessors();
                                                     static const auto device =
                                                         std::make_shared<CpuDevice>();
                                                     return device;
                                                   },
                                                   .count = [] { return 1; }});

}  // namespace
}  // namespace caffe::cpu
