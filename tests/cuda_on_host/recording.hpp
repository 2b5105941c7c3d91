// What the emulated device does at once, what it does later, and what it records and replays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "caffe/device/stream.hpp"

namespace cuda_on_host {

// Kernels, copies and fills of one capture, with the parameters that they were launched with.
class Recording final : public caffe::CapturedGraph {
 public:
  size_t num_nodes() const override { return work.size(); }

  std::vector<std::function<void()>> work;
};

// What the calling thread submits from now on is kept instead of done.
void BeginRecording();
std::unique_ptr<Recording> EndRecording();
bool IsRecording();
void Replay(const Recording& recording);

// Work on the default stream waits until somebody waits for it, and must be told to wait for the
// work on other streams before it: what the host launches without saying so is found in tests.
// All of this is the calling thread's.
void FinishDefaultStream();
// The host, or the default stream by an event, has waited for all other streams.
void DefaultStreamMayGoOn();

// What the calling thread has had done.
struct Launches {
  int64_t graphs = 0;
  int64_t singly = 0;  // kernels, copies and fills outside of graphs
  bool operator==(const Launches&) const = default;
};
Launches LaunchesSoFar();

}  // namespace cuda_on_host
