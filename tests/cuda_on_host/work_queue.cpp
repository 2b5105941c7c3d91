#include "work_queue.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "caffe/device/device_fault.hpp"
#include "caffe/error.hpp"

namespace cuda_on_host {
namespace {

thread_local Launches launches;
std::atomic<int64_t> urgent_streams = 0;
thread_local int64_t pageable_copies = 0;
thread_local int64_t objects = 0;
thread_local int64_t waits = 0;
thread_local int current_device = 0;
// Captures of the calling thread that have begun and not ended.
thread_local int captures = 0;

struct Queues {
  std::mutex mutex;
  std::vector<std::weak_ptr<WorkQueue>> all;
  std::map<int, std::shared_ptr<WorkQueue>> defaults;
  std::map<const char*, size_t> pinned;  // host memory that devices read directly
  std::map<int, int64_t> pinned_allocations;
};

Queues& TheQueues() {
  static Queues* const queues = new Queues;  // devices may outlive static objects
  return *queues;
}

struct Trouble {
  std::mutex mutex;
  std::optional<int64_t> allocations;  // remaining ones
  std::map<int, int64_t> calls;        // remaining ones, by device
  bool are_recordings_refused = false;
  std::optional<size_t> free_bytes;
  bool has_come = false;
};

Trouble& TheTrouble() {
  static Trouble* const trouble = new Trouble;
  return *trouble;
}

bool IsPinned(const void* memory) {
  Queues& queues = TheQueues();
  const std::lock_guard lock(queues.mutex);
  const auto* const address = static_cast<const char*>(memory);
  const auto next = queues.pinned.upper_bound(address);
  if (next == queues.pinned.begin()) return false;
  const auto& [begin, bytes] = *std::prev(next);
  return address < begin + bytes;
}

}  // namespace

bool WorkQueue::Submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (recording_ != nullptr) {
      recording_->push_back(std::move(work));
      return true;
    }
  }
  Push([work = std::move(work)] {
    work();
    return true;
  });
  return false;
}

void WorkQueue::SubmitWaiting(Work work) {
  CheckNotRecording("waits");
  Push(std::move(work));
}

void WorkQueue::Push(Work work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  ++submitted_;
}

void WorkQueue::BeginRecording() {
  {
    const std::lock_guard lock(mutex_);
    CAFFE_ASSERT(recording_ == nullptr, "a stream that records begins to");
    recording_ = std::make_unique<Recording::Work>();
    ++captures;
  }
  // Other users of the stream must meet the capture meanwhile.
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

std::unique_ptr<Recording> WorkQueue::EndRecording() {
  const std::lock_guard lock(mutex_);
  CAFFE_ASSERT(recording_ != nullptr, "a stream that does not record ends to");
  --captures;
  return std::make_unique<Recording>(std::move(*std::exchange(recording_, nullptr)));
}

void WorkQueue::CheckNotRecording(const char* what) {
  const std::lock_guard lock(mutex_);
  CAFFE_ASSERT(recording_ == nullptr, "somebody ", what, " on a stream that records");
}

uint64_t WorkQueue::submitted() {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

bool WorkQueue::is_recording() {
  const std::lock_guard lock(mutex_);
  return recording_ != nullptr;
}

bool WorkQueue::Advance(uint64_t count) {
  while (done_ < count) {
    const std::unique_lock running(running_, std::try_to_lock);
    if (!running.owns_lock()) return false;  // another thread does it
    if (done_ >= count) break;
    Work* next = nullptr;
    {
      const std::lock_guard lock(mutex_);
      next = &work_.front();  // stays in place when others are pushed
    }
    if (!(*next)()) return false;
    Work done;  // its contents are freed without the lock
    {
      const std::lock_guard lock(mutex_);
      done = std::move(work_.front());
      work_.pop_front();
    }
    ++done_;
  }
  return true;
}

void WorkQueue::Finish(uint64_t count) {
  while (!Advance(count)) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

int CurrentDevice() {
  return current_device;
}

void SetCurrentDevice(int device) {
  current_device = device;
}

std::shared_ptr<WorkQueue> DefaultQueue(int device) {
  Queues& queues = TheQueues();
  const std::lock_guard lock(queues.mutex);
  std::shared_ptr<WorkQueue>& queue = queues.defaults[device];
  if (queue == nullptr) queues.all.push_back(queue = std::make_shared<WorkQueue>(device));
  return queue;
}

std::shared_ptr<WorkQueue> QueueOf(cudaStream_t stream) {
  return stream == nullptr ? DefaultQueue(current_device)
                           : WorkQueue::Of(stream).shared_from_this();
}

void Register(const std::shared_ptr<WorkQueue>& queue) {
  Queues& queues = TheQueues();
  const std::lock_guard lock(queues.mutex);
  std::erase_if(queues.all, [](const auto& one) { return one.expired(); });
  queues.all.push_back(queue);
}

void FinishAll(std::optional<int> device) {
  CAFFE_ASSERT(captures == 0, "a thread that records waits for the devices");
  std::vector<std::weak_ptr<WorkQueue>> all;
  {
    Queues& queues = TheQueues();
    const std::lock_guard lock(queues.mutex);
    all = queues.all;
  }
  for (const auto& one : all) {
    const std::shared_ptr<WorkQueue> queue = one.lock();
    if (queue != nullptr && queue->device() == device.value_or(queue->device())) queue->Finish();
  }
}

int64_t PageableCopiesSoFar() {
  return pageable_copies;
}

int64_t WaitsSoFar() {
  return waits;
}
void CountWait() {
  ++waits;
}

int64_t ObjectsMadeSoFar() {
  return objects;
}
void CountObject() {
  ++objects;
}

int64_t PinnedAllocationsSoFar(int device) {
  Queues& queues = TheQueues();
  const std::lock_guard lock(queues.mutex);
  return queues.pinned_allocations[device];
}

int64_t UrgentStreamsSoFar() {
  return urgent_streams;
}
void CountUrgentStream() {
  ++urgent_streams;
}

Launches LaunchesSoFar() {
  return launches;
}

void CountGraph() {
  ++launches.graphs;
}

void LeaveMemoryFor(int64_t allocations) {
  Trouble& trouble = TheTrouble();
  const std::lock_guard lock(trouble.mutex);
  trouble.allocations = allocations;
}

void LeaveNoMemoryForRecordings() {
  Trouble& trouble = TheTrouble();
  const std::lock_guard lock(trouble.mutex);
  trouble.are_recordings_refused = true;
}

void LeaveFree(size_t bytes) {
  Trouble& trouble = TheTrouble();
  const std::lock_guard lock(trouble.mutex);
  trouble.free_bytes = bytes;
}

std::optional<size_t> FreeBytes() {
  Trouble& trouble = TheTrouble();
  const std::lock_guard lock(trouble.mutex);
  return trouble.free_bytes;
}

void LoseDeviceAfter(int device, int64_t calls) {
  Trouble& trouble = TheTrouble();
  const std::lock_guard lock(trouble.mutex);
  trouble.calls[device] = calls;
}

bool EndTrouble() {
  Trouble& trouble = TheTrouble();
  const std::lock_guard lock(trouble.mutex);
  trouble.allocations.reset();
  trouble.are_recordings_refused = false;
  trouble.free_bytes.reset();
  trouble.calls.clear();
  return std::exchange(trouble.has_come, false);
}

void TakeMemory(size_t bytes) {
  CAFFE_ASSERT(!IsReducing(CurrentDevice()), "device ", CurrentDevice(), " is asked for ", bytes,
               " while it reduces: that may wait for the reduction, and this for a rank which the "
               "driver keeps waiting meanwhile");
  CheckNoRankIsAwaited("memory is allocated");
  Trouble& trouble = TheTrouble();
  const std::lock_guard lock(trouble.mutex);
  if (!trouble.allocations || (*trouble.allocations)-- > 0) return;
  trouble.has_come = true;
  throw caffe::DeviceError(caffe::StrCat("cuda on the host: out of memory asking for ", bytes));
}

void TakeMemoryForRecording(size_t nodes) {
  {
    Trouble& trouble = TheTrouble();
    const std::lock_guard lock(trouble.mutex);
    trouble.has_come |= trouble.are_recordings_refused;
    if (trouble.are_recordings_refused)
      throw caffe::DeviceError("cuda on the host: out of memory for a recording");
  }
  TakeMemory(nodes);
}

void CheckWell(int device) {
  Trouble& trouble = TheTrouble();
  const std::lock_guard lock(trouble.mutex);
  const auto calls = trouble.calls.find(device);
  if (calls == trouble.calls.end() || calls->second-- > 0) return;
  trouble.has_come = true;
  throw caffe::DeviceFault(caffe::StrCat("cuda on the host: device ", device, " is lost"));
}

void Submit(cudaStream_t stream, std::function<void()> work) {
  CheckWell(stream == nullptr ? current_device : WorkQueue::Of(stream).device());
  if (stream == nullptr) {
    DefaultQueue(current_device)->Submit(std::move(work));
  } else if (!WorkQueue::Of(stream).Submit(std::move(work))) {
    ++launches.singly;
  }
}

void CheckCurrent(cudaStream_t stream) {
  CAFFE_ASSERT(stream == nullptr || WorkQueue::Of(stream).device() == current_device,
               "a kernel is launched on a stream of device ", WorkQueue::Of(stream).device(),
               ", but the thread's device is ", current_device);
}

}  // namespace cuda_on_host

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  cuda_on_host::TakeMemory(bytes);
  *memory = std::malloc(bytes);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  cuda_on_host::TakeMemory(bytes);
  *memory = std::malloc(bytes);
  cuda_on_host::Queues& queues = cuda_on_host::TheQueues();
  const std::lock_guard lock(queues.mutex);
  queues.pinned[static_cast<const char*>(*memory)] = bytes;
  ++queues.pinned_allocations[cuda_on_host::CurrentDevice()];
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  cuda_on_host::CheckNoRankIsAwaited("memory is freed");
  cuda_on_host::FinishAll(cuda_on_host::CurrentDevice());
  {
    cuda_on_host::Queues& queues = cuda_on_host::TheQueues();
    const std::lock_guard lock(queues.mutex);
    queues.pinned.erase(static_cast<const char*>(memory));
  }
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  attributes->type =
      cuda_on_host::IsPinned(memory) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

// Host memory that is not pinned is written before this returns, but not necessarily read: CUDA
// leaves open when.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  using cuda_on_host::IsPinned;
  const std::shared_ptr<cuda_on_host::WorkQueue> queue = cuda_on_host::QueueOf(stream);
  cuda_on_host::CheckWell(queue->device());
  const bool reads = kind == cudaMemcpyHostToDevice && !IsPinned(from);
  const bool writes = kind == cudaMemcpyDeviceToHost && !IsPinned(to);
  if (reads || writes) {
    queue->CheckNotRecording("copies memory that is not pinned");
    ++cuda_on_host::pageable_copies;
  }
  queue->Submit([=] { std::memcpy(to, from, bytes); });
  if (writes) queue->Finish();
  const bool is_on_device = kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
  if (stream != nullptr && is_on_device) ++cuda_on_host::launches.singly;
  return cudaSuccess;
}
