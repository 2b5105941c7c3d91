#include "caffe/cuda/cuda_stream.hpp"

#include <atomic>

#include "caffe/cuda/busy_kernel.hpp"
#include "caffe/cuda/staging_ring.hpp"

namespace caffe::cuda {
namespace {

class CudaEvent final : public Event {
 public:
  // Timed events spin while waiting, because their measuring callers wait for them.
  explicit CudaEvent(bool is_timed) {
    cudaEvent_t event;
    const unsigned flags =
        is_timed ? cudaEventDefault : cudaEventDisableTiming | cudaEventBlockingSync;
    CAFFE_CUDA_CHECK(cudaEventCreateWithFlags(&event, flags));
    handle_.reset(event);
  }
  cudaEvent_t native() const { return handle_.get(); }
  void Synchronize() override { CAFFE_CUDA_CHECK(cudaEventSynchronize(handle_.get())); }
  bool IsReached() override {
    const cudaError_t status = cudaEventQuery(handle_.get());
    if (status != cudaErrorNotReady) {
      CheckCuda(status, "cudaEventQuery");
      return true;
    }
    ForgetCudaError();  // not an error, but would be reported as that of a launch
    return false;
  }
  double SecondsSince(const Event& earlier) const override {
    float milliseconds = 0;
    CAFFE_CUDA_CHECK(cudaEventElapsedTime(
        &milliseconds, static_cast<const CudaEvent&>(earlier).native(), handle_.get()));
    return milliseconds * 1e-3;
  }

 private:
  EventHandle handle_;
};

class CudaGraph final : public CapturedGraph {
 public:
  // Allocates all memory that the graph needs, on a stream that is not capturing any more. Without
  // the upload the first launch would allocate, and running out of memory would be an error of the
  // step.
  CudaGraph(GraphHandle graph, cudaStream_t stream) {
    CAFFE_CUDA_CHECK(cudaGraphGetNodes(graph.get(), nullptr, &num_nodes_));
    cudaGraphExec_t exec;
    CAFFE_CUDA_CHECK(cudaGraphInstantiate(&exec, graph.get(), 0));
    exec_.reset(exec);
    CAFFE_CUDA_CHECK(cudaGraphUpload(exec, stream));
    CAFFE_CUDA_CHECK(cudaStreamSynchronize(stream));  // launches use another stream
  }
  size_t num_nodes() const override { return num_nodes_; }
  cudaGraphExec_t exec() const { return exec_.get(); }

 private:
  size_t num_nodes_ = 0;
  GraphExecHandle exec_;
};

bool IsPinned(const void* host) {
  cudaPointerAttributes attributes{};
  CAFFE_CUDA_CHECK(cudaPointerGetAttributes(&attributes, host));
  return attributes.type != cudaMemoryTypeUnregistered;
}

class CudaStream final : public Stream {
 public:
  // A null handle is the default stream.
  explicit CudaStream(StreamHandle handle) : handle_(std::move(handle)) {}

  void* native() const override { return handle_.get(); }
  void Synchronize() override { CAFFE_CUDA_CHECK(cudaStreamSynchronize(handle_.get())); }

  void Record(Event& event) override {
    CAFFE_CUDA_CHECK(cudaEventRecord(static_cast<CudaEvent&>(event).native(), handle_.get()));
  }
  void Wait(const Event& event) override {
    CAFFE_CUDA_CHECK(
        cudaStreamWaitEvent(handle_.get(), static_cast<const CudaEvent&>(event).native(), 0));
  }

  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    CheckNotCapturing();
    const auto copy = [&](void* to, const void* from, size_t part) {
      CAFFE_CUDA_CHECK(cudaMemcpyAsync(to, from, part, cudaMemcpyHostToDevice, handle_.get()));
    };
    if (StagingRing::Takes(bytes)) {
      ring_.Send(*this, device, host, bytes, copy);
    } else {
      copy(device, host, bytes);
      // A GPU that can read all host memory directly may do so after the call.
      if (!IsPinned(host)) Synchronize();
    }
  }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    CheckNotCapturing();
    CAFFE_CUDA_CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, handle_.get()));
  }
  void FillZero(void* device, size_t bytes) override {
    CAFFE_CUDA_CHECK(cudaMemsetAsync(device, 0, bytes, handle_.get()));
  }
  void Copy(void* to, const void* from, size_t bytes) override {
    CAFFE_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_.get()));
  }

  void KeepBusy(double seconds) override { LaunchBusyKernel(seconds, handle_.get()); }

  bool can_capture() const override { return !AreLaunchesBlocking(); }
  void BeginCapture() override {
    CAFFE_CUDA_CHECK(cudaStreamBeginCapture(handle_.get(), cudaStreamCaptureModeThreadLocal));
    is_capturing_ = true;
  }
  std::unique_ptr<CapturedGraph> EndCapture() override {
    is_capturing_ = false;
    cudaGraph_t graph = nullptr;
    CAFFE_CUDA_CHECK(cudaStreamEndCapture(handle_.get(), &graph));
    return std::make_unique<CudaGraph>(GraphHandle(graph), handle_.get());
  }
  void Launch(const CapturedGraph& graph) override {
    CAFFE_CUDA_CHECK(cudaGraphLaunch(static_cast<const CudaGraph&>(graph).exec(), handle_.get()));
  }

 private:
  // A replay would read the host memory's contents at that time.
  void CheckNotCapturing() const {
    CAFFE_ASSERT(!is_capturing_, "a copy between host and device is captured");
  }

  StreamHandle handle_;
  StagingRing ring_{[] { return MakeCudaEvent(false); }};
  std::atomic<bool> is_capturing_ = false;
};

}  // namespace

std::unique_ptr<Stream> MakeCudaStream() {
  cudaStream_t stream;
  CAFFE_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return std::make_unique<CudaStream>(StreamHandle(stream));
}

std::unique_ptr<Stream> MakeUrgentCudaStream() {
  int least = 0, greatest = 0;
  CAFFE_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream;
  CAFFE_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  return std::make_unique<CudaStream>(StreamHandle(stream));
}

std::unique_ptr<Stream> DefaultCudaStream() {
  return std::make_unique<CudaStream>(StreamHandle());
}

std::unique_ptr<Event> MakeCudaEvent(bool is_timed) {
  return std::make_unique<CudaEvent>(is_timed);
}

}  // namespace caffe::cuda
