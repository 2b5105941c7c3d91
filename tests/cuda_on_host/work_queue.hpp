// What an emulated device does, in which order, and what it records and replays.
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

// Kernels, copies and fills of one capture, with the parameters that they were launched with. Kept
// by those who launched it until it has run.
struct Recording {
  using Work = std::vector<std::function<void()>>;

  explicit Recording(Work recorded) : work(std::make_shared<const Work>(std::move(recorded))) {}

  const std::shared_ptr<const Work> work;
};

// One stream of one device. Work is done in its order, but not before somebody waits for it or for
// what waits for it: what the host reads without waiting, and an order between two streams that
// nobody has asked for, come to wrong results. A capture belongs to the stream, whichever thread
// submits. Thread-safe.
class WorkQueue : public std::enable_shared_from_this<WorkQueue> {
 public:
  // False while something has yet to happen that it waits for; it is called again.
  using Work = std::function<bool()>;

  explicit WorkQueue(int device) : device_(device) {}
  int device() const { return device_; }
  cudaStream_t native() { return reinterpret_cast<cudaStream_t>(this); }
  static WorkQueue& Of(cudaStream_t stream) { return *reinterpret_cast<WorkQueue*>(stream); }

  // Kept while the queue records. Returns whether it was.
  bool Submit(std::function<void()> work);
  // Throws while the queue records.
  void SubmitWaiting(Work work);

  void BeginRecording();
  std::unique_ptr<Recording> EndRecording();
  // Throws, saying what the caller does, while the queue records.
  void CheckNotRecording(const char* what);

  // How much has been submitted so far.
  uint64_t submitted();
  // Does what can be done without waiting; whether the first `count` pieces are done.
  bool Advance(uint64_t count);
  // Waits for the first `count`, or for all submitted so far.
  void Finish(uint64_t count);
  void Finish() { Finish(submitted()); }

 private:
  void Push(Work work);

  const int device_;
  std::mutex mutex_;  // of the members below
  std::deque<Work> work_;
  uint64_t submitted_ = 0;
  std::unique_ptr<Recording::Work> recording_;
  std::mutex running_;  // held by who does the work
  std::atomic<uint64_t> done_ = 0;
};

// The device that the calling thread's launches go to.
int CurrentDevice();
void SetCurrentDevice(int device);
// Where launches go that name no stream.
std::shared_ptr<WorkQueue> DefaultQueue(int device);
// The stream's, or the default one of the thread's device.
std::shared_ptr<WorkQueue> QueueOf(cudaStream_t stream);
// Waits for all queues of that device, or of all of them.
void FinishAll(std::optional<int> device = std::nullopt);
void Register(const std::shared_ptr<WorkQueue>& queue);

// Copies of the calling thread that read or wrote memory of the host which is not pinned.
int64_t PageableCopiesSoFar();

// Allocations of pinned memory by threads whose device it was.
int64_t PinnedAllocationsSoFar(int device);

// What the calling thread has had done on other streams than the default one.
struct Launches {
  int64_t graphs = 0;
  int64_t singly = 0;  // kernels, fills and the device's own copies, outside of graphs
  bool operator==(const Launches&) const = default;
};
Launches LaunchesSoFar();
void CountGraph();

// Trouble that a test makes. The devices have memory for so many more allocations, pinned ones and
// recordings included, and then none.
void LeaveMemoryFor(int64_t allocations);
void LeaveNoMemoryForRecordings();
// What devices say is free; without it they do not tell.
void LeaveFree(size_t bytes);
// The device answers so many more calls. Those behind them throw DeviceFault and do nothing.
void LoseDeviceAfter(int device, int64_t calls);
// Ends all of it. Whether there was an allocation or a call that failed.
bool EndTrouble();

// Whether NCCL has a reduction under way on that device.
bool IsReducing(int device);

// Throw where there is none left, and while the thread's device reduces.
void TakeMemory(size_t bytes);
void TakeMemoryForRecording(size_t nodes);
std::optional<size_t> FreeBytes();
// Counts a call; throws where the device is lost.
void CheckWell(int device);

}  // namespace cuda_on_host
