// Streams, events and graphs of the CUDA runtime over work queues, for
// src/caffe/cuda/cuda_stream.cpp itself. If CUDA leaves a behaviour open, the worse one happens: a
// graph takes its memory at the first launch unless it was uploaded, and an event belongs to the
// device that it was made on.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "caffe/error.hpp"
#include "work_queue.hpp"

using cuda_on_host::CheckNoRankIsAwaited;
using cuda_on_host::CheckWell;
using cuda_on_host::QueueOf;
using cuda_on_host::Recording;
using cuda_on_host::WorkQueue;

struct CUevent_st {
  int device = 0;
  std::shared_ptr<WorkQueue> queue = nullptr;  // null: was never placed
  uint64_t number = 0;
  std::shared_ptr<std::chrono::steady_clock::time_point> time =
      std::make_shared<std::chrono::steady_clock::time_point>();

  void CheckIsWell() const {
    if (queue != nullptr) CheckWell(device);
  }
};

struct CUgraph_st {
  std::unique_ptr<Recording> recording;
};

// Recorded kernels keep their parameters, so work whose addresses or numbers would have to change
// between replays gives wrong results.
struct CUgraphExec_st {
  std::shared_ptr<const Recording::Work> work;
  bool has_memory = false;

  void TakeMemory() {
    if (!has_memory) cuda_on_host::TakeMemoryForRecording(work->size());
    has_memory = true;
  }
};

namespace {

struct Streams {
  std::mutex mutex;
  std::map<cudaStream_t, std::shared_ptr<WorkQueue>> all;

  static Streams& Get() {
    static Streams* const streams = new Streams;  // devices may outlive static objects
    return *streams;
  }
};

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  CheckNoRankIsAwaited("an event is made");
  cuda_on_host::CountObject();
  *event = new CUevent_st{.device = cuda_on_host::CurrentDevice()};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  CheckNoRankIsAwaited("an event is destroyed");
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::shared_ptr<WorkQueue> queue = QueueOf(stream);
  queue->CheckNotRecording("records an event");
  CheckWell(queue->device());
  CAFFE_ASSERT(event->device == queue->device(), "an event of device ", event->device,
               " is recorded on a stream of device ", queue->device());
  queue->SubmitWaiting([time = event->time] {
    *time = std::chrono::steady_clock::now();
    return true;
  });
  event->queue = queue;
  event->number = queue->submitted();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  event->CheckIsWell();
  if (event->queue != nullptr) event->queue->Finish(event->number);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  event->CheckIsWell();
  const bool is_reached = event->queue == nullptr || event->queue->Advance(event->number);
  return is_reached ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  CAFFE_ASSERT(flags == cudaStreamNonBlocking, "a stream that blocks is not emulated");
  CheckWell(cuda_on_host::CurrentDevice());
  CheckNoRankIsAwaited("a stream is made");
  cuda_on_host::CountObject();
  auto queue = std::make_shared<WorkQueue>(cuda_on_host::CurrentDevice());
  cuda_on_host::Register(queue);
  *stream = queue->native();
  Streams& streams = Streams::Get();
  const std::lock_guard lock(streams.mutex);
  streams.all[*stream] = std::move(queue);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (priority < 0) cuda_on_host::CountUrgentStream();
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  CheckNoRankIsAwaited("a stream is destroyed");
  std::shared_ptr<WorkQueue> queue;
  {
    Streams& streams = Streams::Get();
    const std::lock_guard lock(streams.mutex);
    queue = std::move(streams.all.extract(stream).mapped());
  }
  queue->Finish();
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::shared_ptr<WorkQueue> queue = QueueOf(stream);
  queue->CheckNotRecording("waits");
  CheckWell(queue->device());
  cuda_on_host::CountWait();
  queue->Finish();
  return cudaSuccess;
}

// Waits for the event in its current state; it may be placed elsewhere later.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::shared_ptr<WorkQueue> queue = QueueOf(stream);
  CheckWell(queue->device());
  if (event->queue == nullptr) {
    queue->SubmitWaiting([] { return true; });
  } else {
    queue->SubmitWaiting(
        [awaited = event->queue, number = event->number] { return awaited->Advance(number); });
  }
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::shared_ptr<WorkQueue> queue = QueueOf(stream);
  CheckWell(queue->device());
  queue->BeginRecording();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::shared_ptr<WorkQueue> queue = QueueOf(stream);
  auto ended = std::make_unique<CUgraph_st>(CUgraph_st{queue->EndRecording()});
  CheckWell(queue->device());
  *graph = ended.release();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status =
      QueueOf(stream)->is_recording() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  CAFFE_ASSERT(nodes == nullptr, "a graph's nodes are not emulated");
  *count = graph->recording->work->size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{graph->recording->work};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  CheckWell(QueueOf(stream)->device());
  exec->TakeMemory();
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const std::shared_ptr<WorkQueue> queue = QueueOf(stream);
  CheckWell(queue->device());
  exec->TakeMemory();
  cuda_on_host::CountGraph();
  queue->SubmitWaiting([work = exec->work] {
    for (const std::function<void()>& one : *work) one();
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  CheckNoRankIsAwaited("a graph is destroyed");
  delete exec;
  return cudaSuccess;
}
