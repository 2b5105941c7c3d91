// The work of an emulated device, its order, and recording and replay.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda_runtime_api.h"

namespace cuda_on_host {

// Kernels, copies and fills of one capture, with the parameters that they were launched with. The
// launching code keeps it until it has run.
struct Recording {
  using Work = std::vector<std::function<void()>>;

  explicit Recording(Work recorded) : work(std::make_shared<const Work>(std::move(recorded))) {}

  const std::shared_ptr<const Work> work;
};

// One stream of one device. Work is done in its order, but not before somebody waits for it or for
// other work that waits for it. So reading results without waiting, or relying on an order between
// two streams that was not requested, gives wrong results. A capture belongs to the stream,
// whichever thread submits. Thread-safe.
class WorkQueue : public std::enable_shared_from_this<WorkQueue> {
 public:
  // Returns false while it still waits for something; then it is called again.
  using Work = std::function<bool()>;

  explicit WorkQueue(int device) : device_(device) {}
  int device() const { return device_; }
  cudaStream_t native() { return reinterpret_cast<cudaStream_t>(this); }
  static WorkQueue& Of(cudaStream_t stream) { return *reinterpret_cast<WorkQueue*>(stream); }

  // While the queue records, the work is stored. Returns whether it was.
  bool Submit(std::function<void()> work);
  // Throws while the queue records.
  void SubmitWaiting(Work work);

  void BeginRecording();
  std::unique_ptr<Recording> EndRecording();
  // Throws while the queue records; `what` names the caller's action.
  void CheckNotRecording(const char* what);
  bool is_recording();

  // The number of pieces of work submitted so far.
  uint64_t submitted();
  // Does all work that is possible without waiting. Returns whether the first `count` pieces are
  // done.
  bool Advance(uint64_t count);
  // Waits for the first `count` pieces, or for all submitted so far.
  void Finish(uint64_t count);
  void Finish() { Finish(submitted()); }

 private:
  void Push(Work work);

  const int device_;
  std::mutex mutex_;  // guards the members below
  std::deque<Work> work_;
  uint64_t submitted_ = 0;
  std::unique_ptr<Recording::Work> recording_;
  std::mutex running_;  // held by the thread that does the work
  std::atomic<uint64_t> done_ = 0;
};

// The device that the calling thread's launches go to.
int CurrentDevice();
void SetCurrentDevice(int device);
// The queue for launches that name no stream.
std::shared_ptr<WorkQueue> DefaultQueue(int device);
// The stream's queue, or the default queue of the thread's device.
std::shared_ptr<WorkQueue> QueueOf(cudaStream_t stream);
// Waits for all queues of that device, or of all devices.
void FinishAll(std::optional<int> device = std::nullopt);
void Register(const std::shared_ptr<WorkQueue>& queue);

// The number of copies by the calling thread that read or wrote unpinned host memory.
int64_t PageableCopiesSoFar();

// How often the calling thread has waited for a stream.
int64_t WaitsSoFar();
void CountWait();

// The number of events and streams made by the calling thread.
int64_t ObjectsMadeSoFar();
void CountObject();

// The number of allocations of pinned memory by threads while this was their device.
int64_t PinnedAllocationsSoFar(int device);

// The work that the calling thread has submitted to streams other than the default one.
struct Launches {
  int64_t graphs = 0;
  int64_t singly = 0;  // kernels, fills and the device's own copies, outside graphs
  bool operator==(const Launches&) const = default;
};
Launches LaunchesSoFar();
// Streams with a priority above the usual one, of all devices.
int64_t UrgentStreamsSoFar();
void CountUrgentStream();
void CountGraph();

// Trouble that a test makes. The devices have memory for this many more allocations, including
// pinned ones and recordings, and then none.
void LeaveMemoryFor(int64_t allocations);
void LeaveNoMemoryForRecordings();
// The number of free bytes that devices report; without it they report none.
void LeaveFree(size_t bytes);
// The device answers this many more calls. Later calls throw DeviceFault and do nothing.
void LoseDeviceAfter(int device, int64_t calls);
// Ends all trouble. Returns whether an allocation or a call has failed.
bool EndTrouble();

// Returns whether NCCL is reducing on that device.
bool IsReducing(int device);
// Throws if one rank of a process reduces what another of its ranks has not begun to. `what` says
// what a thread does that may wait for all GPUs of its process.
void CheckNoRankIsAwaited(const char* what);

// Both throw if no memory is left, and while the thread's device reduces.
void TakeMemory(size_t bytes);
void TakeMemoryForRecording(size_t nodes);
std::optional<size_t> FreeBytes();
// Counts a call; throws if the device is lost.
void CheckWell(int device);

}  // namespace cuda_on_host
