// The device whose kernels run on emulated grids.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cuda_device.hpp"
#include "caffe/distributed/gpu_communicators.hpp"
#include "caffe/distributed/local_communicator.hpp"
#include "recording.hpp"

namespace caffe::cuda {

void ThrowCudaError(cudaError_t, const char* call) {
  throw DeviceError(StrCat("cuda on the host: ", call));
}

namespace {

// Where the calling thread has last placed an event on the default stream.
thread_local const Event* event_of_default_stream = nullptr;

// Records and replays as a GPU does: recorded kernels keep their parameters, so work whose
// addresses or numbers would have to change between replays comes to wrong results.
class EmulatedStream final : public Stream {
 public:
  explicit EmulatedStream(std::unique_ptr<Stream> host) : host_(std::move(host)) {}

  void* native() const override { return host_.get(); }
  void Synchronize() override {
    CheckNotRecording("waits");
    cuda_on_host::DefaultStreamMayGoOn();
  }
  void Record(Event& event) override {
    CheckNotRecording("records an event");
    host_->Record(event);
  }
  void Wait(const Event& event) override {
    CheckNotRecording("waits for an event");
    if (&event == event_of_default_stream) cuda_on_host::FinishDefaultStream();
  }
  // A GPU would read the host's memory anew at each replay, when something else may be there.
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    CheckNotRecording("reads the host's memory");
    host_->CopyFromHost(device, host, bytes);
  }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    CheckNotRecording("writes the host's memory");
    host_->CopyToHost(host, device, bytes);
  }
  void FillZero(void* device, size_t bytes) override {
    cuda_on_host::Submit(stream(), [=] { std::memset(device, 0, bytes); });
  }
  void Copy(void* to, const void* from, size_t bytes) override {
    cuda_on_host::Submit(stream(), [=] { std::memcpy(to, from, bytes); });
  }

  bool can_capture() const override { return true; }
  void BeginCapture() override { cuda_on_host::BeginRecording(); }
  std::unique_ptr<CapturedGraph> EndCapture() override { return cuda_on_host::EndRecording(); }
  void Launch(const CapturedGraph& graph) override {
    CheckNotRecording("launches a graph");
    cuda_on_host::Replay(static_cast<const cuda_on_host::Recording&>(graph));
  }

 private:
  static void CheckNotRecording(const char* what) {
    CAFFE_ASSERT(!cuda_on_host::IsRecording(), "recorded work ", what);
  }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(native()); }

  const std::unique_ptr<Stream> host_;
};

// What is launched on it is done when somebody waits for it; see recording.hpp.
class EmulatedDefaultStream final : public Stream {
 public:
  explicit EmulatedDefaultStream(std::unique_ptr<Stream> host) : host_(std::move(host)) {}

  void* native() const override { return nullptr; }
  void Synchronize() override { cuda_on_host::FinishDefaultStream(); }
  void Record(Event& event) override {
    host_->Record(event);
    event_of_default_stream = &event;
  }
  void Wait(const Event&) override { cuda_on_host::DefaultStreamMayGoOn(); }
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    Copy(device, host, bytes);
  }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    Copy(host, device, bytes);
  }
  void FillZero(void* device, size_t bytes) override {
    cuda_on_host::Submit(nullptr, [=] { std::memset(device, 0, bytes); });
  }
  void Copy(void* to, const void* from, size_t bytes) override {
    cuda_on_host::Submit(nullptr, [=] { std::memcpy(to, from, bytes); });
  }

 private:
  const std::unique_ptr<Stream> host_;
};

class EmulatedDevice final : public CudaDevice {
 public:
  EmulatedDevice() : CudaDevice(0, {"emulated", 9, 0, 132, size_t{1} << 30, 232448}) {}

  std::string description() const override { return "CUDA kernels, emulated"; }
  std::shared_ptr<void> Allocate(size_t bytes) override {
    // Of the size asked for, so that the address sanitizer sees what lies beyond.
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, bytes) != 0) throw DeviceError("out of memory");
    std::memset(memory, 0, bytes);
    return {memory, [](void* freed) {
              cuda_on_host::FinishDefaultStream();  // as cudaFree waits for the device
              std::free(freed);
            }};
  }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    cuda_on_host::DefaultStreamMayGoOn();
    std::copy_n(static_cast<const char*>(device), bytes, static_cast<char*>(host));
  }
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    std::copy_n(static_cast<const char*>(host), bytes, static_cast<char*>(device));
  }
  void Synchronize() override {
    stream_.Synchronize();
    default_stream_.Synchronize();
  }
  Stream& compute_stream() override { return stream_; }
  Stream& default_stream() override { return default_stream_; }

 private:
  EmulatedStream stream_{MakeStream()};
  EmulatedDefaultStream default_stream_{MakeStream()};
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
