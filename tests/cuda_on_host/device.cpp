// The device whose kernels run on emulated grids.
#include <algorithm>
#include <cstdlib>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cuda_device.hpp"
#include "caffe/distributed/gpu_communicators.hpp"
#include "caffe/distributed/local_communicator.hpp"

namespace caffe::cuda {

void ThrowCudaError(cudaError_t, const char* call) {
  throw DeviceError(StrCat("cuda on the host: ", call));
}

namespace {

class EmulatedDevice final : public CudaDevice {
 public:
  EmulatedDevice() : CudaDevice(0, {"emulated", 9, 0, 132, size_t{1} << 30, 232448}) {}

  std::string description() const override { return "CUDA kernels, emulated"; }
  std::shared_ptr<void> Allocate(size_t bytes) override {
    // Of the size asked for, so that the address sanitizer sees what lies beyond.
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, bytes) != 0) throw DeviceError("out of memory");
    std::memset(memory, 0, bytes);
    return {memory, std::free};
  }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    std::copy_n(static_cast<const char*>(device), bytes, static_cast<char*>(host));
  }
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    std::copy_n(static_cast<const char*>(host), bytes, static_cast<char*>(device));
  }
  void Synchronize() override {}
};

const DeviceRegistrar registrar(DeviceKind::kCuda, {.make = [](int) -> std::shared_ptr<Device> {
                                                      static const auto device =
                                                          std::make_shared<EmulatedDevice>();
                                                      return device;
                                                    },
                                                    .count = [] { return 1; }});

const GpuCommunicatorRegistrar communicators([](const std::vector<int>& gpus) {
  return MakeLocalCommunicators(static_cast<int>(gpus.size()));
});

}  // namespace
}  // namespace caffe::cuda
