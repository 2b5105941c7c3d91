#include "recording.hpp"

#include <utility>

#include "cuda_runtime_api.h"

namespace cuda_on_host {
namespace {

thread_local std::unique_ptr<Recording> recording;
thread_local Launches launches;

}  // namespace

void Submit(std::function<void()> work) {
  if (recording != nullptr) {
    recording->work.push_back(std::move(work));
    return;
  }
  ++launches.singly;
  work();
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
  for (const std::function<void()>& work : recorded.work) work();
}

Launches LaunchesSoFar() {
  return launches;
}

}  // namespace cuda_on_host
