#include "caffe/plan/step_profiler.hpp"

#include "caffe/device/timed_event.hpp"

namespace caffe {

void StepProfiler::Begin(size_t step) {
  if (events_.empty()) events_.resize(times_.size());
  auto& [begin, end] = events_[step];
  if (begin == nullptr) begin = MakeTimedEvent(device_), end = MakeTimedEvent(device_);
  device_.compute_stream().Record(*begin);
}

void StepProfiler::End(size_t step) {
  device_.compute_stream().Record(*events_[step].second);
  timed_.push_back(step);
}

void StepProfiler::AddUp() {
  for (const size_t step : timed_) {
    const auto& [begin, end] = events_[step];
    end->Synchronize();
    times_[step].seconds += end->SecondsSince(*begin);
    ++times_[step].runs;
  }
  timed_.clear();
}

}  // namespace caffe
