// Properties of a CUDA device, real or only described, for kernel factories.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "caffe/device/device.hpp"
#include "caffe/device/device_peaks.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

struct ChipProperties {
  std::string name;       // "NVIDIA H200"
  int compute_major = 0;  // compute capability 9.0
  int compute_minor = 0;
  int multiprocessors = 0;
  size_t memory_bytes = 0;
  size_t shared_memory_per_block = 0;  // maximum for a kernel
  // Only of a described chip.
  int memory_bus_bits = 0;
  DevicePeaks peaks = {};
};

class CudaDevice : public Device {
 public:
  DeviceKind kind() const final { return DeviceKind::kCuda; }
  int num_threads() const final { return chip_.multiprocessors; }
  bool is_host_accessible() const final { return false; }

  const ChipProperties& chip() const { return chip_; }
  // Ordinal of the device; -1 if it is described.
  int id() const { return id_; }

 protected:
  CudaDevice(int id, ChipProperties chip) : id_(id), chip_(std::move(chip)) {}

 private:
  const int id_;
  const ChipProperties chip_;
};

// See ReservedBytes(). CUDA reports free bytes but not its own future use: code of kernels is
// loaded when they first run, cuDNN creates a handle for each thread, and graphs are instantiated
// after the first iteration. NCCL allocates its channels' buffers in the first reduction.
inline size_t CudaReservedBytes(int ranks) {
  constexpr size_t kLibraries = size_t{512} << 20, kNccl = size_t{1} << 30;
  return ranks > 1 ? kLibraries + kNccl : kLibraries;
}

inline CudaDevice& CudaDeviceOf(const KernelRequest& request) {
  return static_cast<CudaDevice&>(request.device);
}

// Called after a library call failed: throws the error of work launched earlier if that is the
// cause. Libraries have a runtime of their own and report it as their own error.
void ThrowErrorOfEarlierWork(Device& device);

inline cudaStream_t StreamOf(const KernelContext& context) {
  return static_cast<cudaStream_t>(context.stream->native());
}

}  // namespace caffe::cuda
