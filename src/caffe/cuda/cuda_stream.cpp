#include "caffe/cuda/cuda_stream.hpp"

namespace caffe::cuda {
namespace {

class CudaEvent final : public Event {
 public:
  CudaEvent() {
    cudaEvent_t event;
    CAFFE_CUDA_CHECK(cudaEventCreate(&event));
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
    cudaGetLastError();  // it is no error, but would be taken for that of a launch
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
  explicit CudaGraph(GraphHandle graph) {
    CAFFE_CUDA_CHECK(cudaGraphGetNodes(graph.get(), nullptr, &num_nodes_));
    cudaGraphExec_t exec;
    CAFFE_CUDA_CHECK(cudaGraphInstantiate(&exec, graph.get(), 0));
    exec_.reset(exec);
  }
  size_t num_nodes() const override { return num_nodes_; }
  cudaGraphExec_t exec() const { return exec_.get(); }

 private:
  size_t num_nodes_ = 0;
  GraphExecHandle exec_;
};

class CudaStream final : public Stream {
 public:
  // Null: the default stream.
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
    CAFFE_CUDA_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, handle_.get()));
  }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    CAFFE_CUDA_CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, handle_.get()));
  }
  void FillZero(void* device, size_t bytes) override {
    CAFFE_CUDA_CHECK(cudaMemsetAsync(device, 0, bytes, handle_.get()));
  }
  void Copy(void* to, const void* from, size_t bytes) override {
    CAFFE_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_.get()));
  }

  bool can_capture() const override { return true; }
  void BeginCapture() override {
    CAFFE_CUDA_CHECK(cudaStreamBeginCapture(handle_.get(), cudaStreamCaptureModeThreadLocal));
  }
  std::unique_ptr<CapturedGraph> EndCapture() override {
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(handle_.get(), &graph);
    GraphHandle owned(graph);
    if (status != cudaSuccess) cudaGetLastError();
    if (status != cudaSuccess || graph == nullptr) return nullptr;
    return std::make_unique<CudaGraph>(std::move(owned));
  }
  void Launch(const CapturedGraph& graph) override {
    CAFFE_CUDA_CHECK(cudaGraphLaunch(static_cast<const CudaGraph&>(graph).exec(), handle_.get()));
  }

 private:
  StreamHandle handle_;
};

}  // namespace

std::unique_ptr<Stream> MakeCudaStream() {
  cudaStream_t stream;
  CAFFE_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return std::make_unique<CudaStream>(StreamHandle(stream));
}

std::unique_ptr<Stream> DefaultCudaStream() {
  return std::make_unique<CudaStream>(StreamHandle());
}

std::unique_ptr<Event> MakeCudaEvent() {
  return std::make_unique<CudaEvent>();
}

}  // namespace caffe::cuda
