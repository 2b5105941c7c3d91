// The devices whose kernels run on emulated grids.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cuda_device.hpp"
#include "caffe/cuda/pinned_memory.hpp"
#include "caffe/cuda/staging_ring.hpp"
#include "caffe/device/host_memory.hpp"
#include "work_queue.hpp"

namespace caffe::cuda {

void ThrowCudaError(cudaError_t, const char* call) {
  throw DeviceError(StrCat("cuda on the host: ", call));
}

namespace {

using cuda_on_host::WorkQueue;

constexpr int kDevices = 4;

class EmulatedEvent final : public Event {
 public:
  void Synchronize() override {
    CheckWell();
    if (queue_ != nullptr) queue_->Finish(number_);
  }
  bool IsReached() override {
    CheckWell();
    return queue_ == nullptr || queue_->Advance(number_);
  }
  double SecondsSince(const Event& earlier) const override {
    return std::chrono::duration<double>(*time_ - *static_cast<const EmulatedEvent&>(earlier).time_)
        .count();
  }

  void RecordOn(const std::shared_ptr<WorkQueue>& queue) {
    queue->SubmitWaiting([time = time_] {
      *time = std::chrono::steady_clock::now();
      return true;
    });
    queue_ = queue;
    number_ = queue->submitted();
  }
  // As the event is now; it may be placed elsewhere later.
  WorkQueue::Work WaitForIt() const {
    if (queue_ == nullptr) return [] { return true; };
    return [queue = queue_, number = number_] { return queue->Advance(number); };
  }

 private:
  void CheckWell() const {
    if (queue_ != nullptr) cuda_on_host::CheckWell(queue_->device());
  }

  std::shared_ptr<WorkQueue> queue_;
  uint64_t number_ = 0;
  std::shared_ptr<std::chrono::steady_clock::time_point> time_ =
      std::make_shared<std::chrono::steady_clock::time_point>();
};

// Records and replays as a GPU does: recorded kernels keep their parameters, so work whose
// addresses or numbers would have to change between replays comes to wrong results.
class EmulatedStream final : public Stream {
 public:
  EmulatedStream(std::shared_ptr<WorkQueue> queue, cudaStream_t native)
      : queue_(std::move(queue)), native_(native) {}
  ~EmulatedStream() override { queue_->Finish(); }

  void* native() const override { return native_; }
  void Synchronize() override {
    queue_->CheckNotRecording("waits");
    cuda_on_host::CheckWell(queue_->device());
    queue_->Finish();
  }
  void Record(Event& event) override {
    queue_->CheckNotRecording("records an event");
    cuda_on_host::CheckWell(queue_->device());
    static_cast<EmulatedEvent&>(event).RecordOn(queue_);
  }
  void Wait(const Event& event) override {
    cuda_on_host::CheckWell(queue_->device());
    queue_->SubmitWaiting(static_cast<const EmulatedEvent&>(event).WaitForIt());
  }
  // A GPU would read the host's memory anew at each replay, when something else may be there.
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    queue_->CheckNotRecording("reads the host's memory");
    const auto copy = [&](void* to, const void* from, size_t part) {
      cuda_on_host::CopyBetween(to, from, part, cudaMemcpyHostToDevice, native_);
    };
    if (StagingRing::Takes(bytes)) {
      ring_.Send(*this, device, host, bytes, copy);
    } else {
      copy(device, host, bytes);
    }
  }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    queue_->CheckNotRecording("writes the host's memory");
    cuda_on_host::CopyBetween(host, device, bytes, cudaMemcpyDeviceToHost, native_);
  }
  void FillZero(void* device, size_t bytes) override {
    cuda_on_host::Submit(native_, [=] { std::memset(device, 0, bytes); });
  }
  void Copy(void* to, const void* from, size_t bytes) override {
    cuda_on_host::Submit(native_, [=] { std::memcpy(to, from, bytes); });
  }

  bool can_capture() const override { return native_ != nullptr; }
  void BeginCapture() override {
    cuda_on_host::CheckWell(queue_->device());
    queue_->BeginRecording();
  }
  std::unique_ptr<CapturedGraph> EndCapture() override {
    std::unique_ptr<CapturedGraph> graph = queue_->EndRecording();
    cuda_on_host::CheckWell(queue_->device());
    cuda_on_host::TakeMemoryForRecording(graph->num_nodes());
    return graph;
  }
  void Launch(const CapturedGraph& graph) override {
    cuda_on_host::CheckWell(queue_->device());
    cuda_on_host::CountGraph();
    queue_->SubmitWaiting([work = static_cast<const cuda_on_host::Recording&>(graph).work] {
      for (const std::function<void()>& one : *work) one();
      return true;
    });
  }

 private:
  const std::shared_ptr<WorkQueue> queue_;
  const cudaStream_t native_;
  StagingRing ring_{[] { return std::make_unique<EmulatedEvent>(); }};
};

class EmulatedDevice final : public CudaDevice {
 public:
  explicit EmulatedDevice(int id)
      : CudaDevice(id, {"emulated", 9, 0, 132, size_t{1} << 30, 232448}),
        stream_(MakeStream()),
        default_stream_(cuda_on_host::DefaultQueue(id), nullptr) {}

  std::string description() const override { return "CUDA kernels, emulated"; }
  std::string identity() const override { return StrCat("emulated GPU ", id()); }
  void MakeCurrent() override { cuda_on_host::SetCurrentDevice(id()); }
  std::shared_ptr<void> Allocate(size_t bytes) override {
    // Of the size asked for, so that the address sanitizer sees what lies beyond.
    cuda_on_host::CheckWell(id());
    cuda_on_host::TakeMemory(bytes);
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, bytes) != 0) throw DeviceError("out of memory");
    MakeCurrent();
    stream_->FillZero(memory, bytes);  // where it is used first
    return {memory, [id = id()](void* freed) {
              cuda_on_host::FinishAll(id);  // as cudaFree waits for the device
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
    default_stream_.Synchronize();
  }
  Stream& compute_stream() override { return *stream_; }
  Stream& default_stream() override { return default_stream_; }
  std::unique_ptr<Stream> MakeStream() override {
    cuda_on_host::CheckWell(id());
    auto queue = std::make_shared<WorkQueue>(id());
    cuda_on_host::Register(queue);
    const cudaStream_t native = queue->native();
    return std::make_unique<EmulatedStream>(std::move(queue), native);
  }
  std::unique_ptr<Event> MakeEvent() override { return std::make_unique<EmulatedEvent>(); }

 private:
  const std::unique_ptr<Stream> stream_;
  EmulatedStream default_stream_;
};

// One object per device, so that nets on it share its stream and are in order.
std::shared_ptr<Device> MakeEmulatedDevice(int id) {
  static const std::array<std::shared_ptr<Device>, kDevices> devices = [] {
    std::array<std::shared_ptr<Device>, kDevices> made;
    for (int i = 0; i < kDevices; ++i) made[i] = std::make_shared<EmulatedDevice>(i);
    return made;
  }();
  if (id < 0 || id >= kDevices) throw DeviceError(StrCat("there is no emulated device ", id));
  return devices[id];
}

const HostMemoryRegistrar host_memory_registrar(DeviceKind::kCuda, AllocatePinned);
const DeviceRegistrar registrar(DeviceKind::kCuda,
                                {.make = MakeEmulatedDevice, .count = [] { return kDevices; }});

}  // namespace
}  // namespace caffe::cuda
