#include "recording.hpp"

#include <deque>
#include <utility>

#include "caffe/error.hpp"
#include "cuda_runtime_api.h"

namespace cuda_on_host {
namespace {

thread_local std::unique_ptr<Recording> recording;
thread_local Launches launches;
thread_local std::deque<std::function<void()>> default_stream;
thread_local bool default_stream_is_behind = false;

}  // namespace

void Submit(cudaStream_t stream, std::function<void()> work) {
  if (stream == nullptr) {
    CAFFE_ASSERT(!default_stream_is_behind, "the default stream does not wait for the work before");
    default_stream.push_back(std::move(work));
    return;
  }
  default_stream_is_behind = true;
  if (recording != nullptr) {
    recording->work.push_back(std::move(work));
    return;
  }
  ++launches.singly;
  work();
}

void FinishDefaultStream() {
  while (!default_stream.empty()) {
    const std::function<void()> work = std::move(default_stream.front());
    default_stream.pop_front();
    work();
  }
}

void DefaultStreamMayGoOn() {
  default_stream_is_behind = false;
}

void BeginRecording() {
  recording = std::make_unique<Recording>();
}

std::unique_ptr<Recording> EndRecording() {
  return std::move(recording);
}

bool IsRecording() {
  return recording != nullptr;
}

void Replay(const Recording& recorded) {
  ++launches.graphs;
  default_stream_is_behind = true;
  for (const std::function<void()>& work : recorded.work) work();
}

Launches LaunchesSoFar() {
  return launches;
}

}  // namespace cuda_on_host
