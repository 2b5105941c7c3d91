#include "caffe/plan/captured_segments.hpp"

#include <glog/logging.h>

#include <utility>

#include "caffe/device/device_fault.hpp"
#include "caffe/error.hpp"

namespace caffe {

bool CapturedSegments::Prepare(const double* loss_scale, std::optional<uint64_t> appended_work) {
  const uint64_t work = appended_work.value_or(appended_work_);
  const bool is_other = loss_scale != loss_scale_ || work != appended_work_;
  if (is_other) Forget();
  loss_scale_ = loss_scale;
  appended_work_ = work;
  return is_other;
}

void CapturedSegments::Forget() {
  segments_.clear();
}

bool CapturedSegments::Run(const Key& key, bool may_capture, const Steps& steps,
                           const std::function<std::string()>& name) {
  Stream& stream = device_.compute_stream();
  // CPU kernels need no loading.
  if (!stream.can_capture() && device_.is_host_accessible()) return steps(stream, false), false;
  Segment& segment = segments_[key];
  // In their first run, kernels may still upload tables and load code.
  const bool is_first = !std::exchange(segment.has_run, true);
  is_loading_ |= is_first;
  if (is_first || !may_capture || !stream.can_capture() || segment.cannot_be_captured)
    return steps(stream, false), false;
  if (segment.graph == nullptr) {
    is_loading_ = true;
    segment.graph = Capture(steps, name);
  }
  if (segment.graph == nullptr) {
    segment.cannot_be_captured = true;
    return steps(stream, false), false;
  }
  stream.Launch(*segment.graph);
  return true;
}

// Returns null if a step cannot be captured, or memory for the graph is lacking.
std::unique_ptr<CapturedGraph> CapturedSegments::Capture(const Steps& steps,
                                                         const std::function<std::string()>& name) {
  try {
    if (capture_stream_ == nullptr) capture_stream_ = device_.MakeStream();
    capture_stream_->BeginCapture();
    is_capturing_ = true;
    steps(*capture_stream_, true);
    is_capturing_ = false;
    return capture_stream_->EndCapture();
  } catch (const DeviceFault&) {
    AbandonCapture();
    throw;
  } catch (const DeviceError& error) {
    AbandonCapture();
    refused_because_ = error.what();
    const std::string warning =
        StrCat(name(), " run one by one, which takes longer than one launch: ", refused_because_);
    LOG_IF(WARNING, warned_.insert(warning).second) << warning;
    return nullptr;
  } catch (...) {
    AbandonCapture();
    throw;
  }
}

// The error that is being thrown matters, not one from the abandoned capture.
void CapturedSegments::AbandonCapture() noexcept {
  if (!std::exchange(is_capturing_, false)) return;
  try {
    capture_stream_->EndCapture();
  } catch (const DeviceError&) {
  }
}

CapturedSegments::Statistics CapturedSegments::statistics() const {
  Statistics found;
  for (const auto& [key, segment] : segments_) {
    found.refused += segment.cannot_be_captured;
    if (segment.graph == nullptr) continue;
    ++found.segments;
    found.nodes += segment.graph->num_nodes();
  }
  if (found.refused > 0) found.reason = refused_because_;
  return found;
}

}  // namespace caffe
