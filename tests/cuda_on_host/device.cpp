// The devices whose kernels run on emulated grids.
#include <array>
#include <cstdlib>
#include <mutex>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cuda_device.hpp"
#include "caffe/cuda/cuda_stream.hpp"
#include "caffe/cuda/pinned_memory.hpp"
#include "caffe/device/host_memory.hpp"
#include "caffe/device/reserved_memory.hpp"
#include "work_queue.hpp"

namespace caffe::cuda {

// The emulated runtime throws its own errors.
void ThrowCudaError(cudaError_t, const char* call) {
  throw DeviceError(StrCat("cuda on the host: ", call));
}
bool AreLaunchesBlocking() {
  return false;
}
void ForgetCudaError() {}

namespace {

constexpr int kDevices = 4;

class EmulatedDevice final : public CudaDevice {
 public:
  explicit EmulatedDevice(int id)
      : CudaDevice(id, {"emulated", 9, 0, 132, size_t{1} << 30, 232448}),
        stream_(MakeStream()),
        default_stream_(DefaultCudaStream()) {}

  std::string description() const override { return "CUDA kernels, emulated"; }
  std::string identity() const override { return StrCat("emulated GPU ", id()); }
  void MakeCurrent() override { cuda_on_host::SetCurrentDevice(id()); }
  std::shared_ptr<void> Allocate(size_t bytes) override {
    // Exactly the requested size, so that the address sanitizer detects accesses beyond it.
    cuda_on_host::CheckWell(id());
    cuda_on_host::TakeMemory(bytes);
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, bytes) != 0) throw DeviceError("out of memory");
    MakeCurrent();
    stream_->FillZero(memory, bytes);  // on the stream that uses it first
    return {memory, [id = id()](void* freed) {
              cuda_on_host::CheckNoRankIsAwaited("memory is freed");
              cuda_on_host::FinishAll(id);  // like cudaFree, waits for the device
              std::free(freed);
            }};
  }
  std::optional<size_t> FreeBytes() override { return cuda_on_host::FreeBytes(); }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    MakeCurrent();
    stream_->CopyToHost(host, device, bytes);
    stream_->Synchronize();
  }
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    MakeCurrent();
    stream_->CopyFromHost(device, host, bytes);
  }
  void Synchronize() override {
    MakeCurrent();
    stream_->Synchronize();
    default_stream_->Synchronize();
  }
  Stream& compute_stream() override { return *stream_; }
  Stream& default_stream() override { return *default_stream_; }
  std::unique_ptr<Stream> MakeStream() override {
    MakeCurrent();
    return MakeCudaStream();
  }
  std::unique_ptr<Stream> MakeUrgentStream() override {
    MakeCurrent();
    return MakeUrgentCudaStream();
  }
  std::unique_ptr<Event> MakeEvent() override {
    MakeCurrent();
    return MakeCudaEvent(false);
  }

 private:
  const std::unique_ptr<Stream> stream_, default_stream_;
};

// One object per device, so that nets on it share its stream and run in order.
std::shared_ptr<Device> MakeEmulatedDevice(int id) {
  static std::mutex mutex;
  static std::array<std::shared_ptr<Device>, kDevices> devices;
  if (id < 0 || id >= kDevices) throw DeviceError(StrCat("there is no emulated device ", id));
  const std::lock_guard lock(mutex);
  if (devices[id] == nullptr) devices[id] = std::make_shared<EmulatedDevice>(id);
  return devices[id];
}

const HostMemoryRegistrar host_memory_registrar(DeviceKind::kCuda, AllocatePinned);
const ReservedMemoryRegistrar reserved_registrar(DeviceKind::kCuda, CudaReservedBytes);
const DeviceRegistrar registrar(DeviceKind::kCuda,
                                {.make = MakeEmulatedDevice, .count = [] { return kDevices; }});

}  // namespace
}  // namespace caffe::cuda
