// Segments of a program that a device replays as one graph.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "caffe/device/device.hpp"
#include "caffe/device/stream.hpp"

namespace caffe {

// If the device supports capture, the steps between two host calls are captured when they run for
// the second time, and launched as one graph from then on; numbers that change from pass to pass
// are in device memory.
class CapturedSegments {
 public:
  // Steps [first, last) of a run, without host calls, and work after the last step.
  struct Key {
    size_t first = 0, last = 0;
    bool accumulate = false, has_appended = false;
    auto operator<=>(const Key&) const = default;
  };
  struct Statistics {
    int segments = 0;
    size_t nodes = 0;    // kernels, copies and fills in all of them
    int refused = 0;     // segments that the device could not capture
    std::string reason;  // of the last refusal
  };

  explicit CapturedSegments(Device& device) : device_(device) {}

  // Captured graphs contain addresses: forgets them if that of the loss scale is another one than
  // in the last run, or the work after the last step, by its number. Returns true if it has.
  bool Prepare(const double* loss_scale, std::optional<uint64_t> appended_work);
  void Forget();
  // Called at the beginning of a run.
  void BeginRun() { is_loading_ = false; }
  // True if this run has loaded code or captured a graph, for which a device may wait until it is
  // idle.
  bool is_loading() const { return is_loading_; }

  // Launches a captured segment and returns true. Otherwise calls run(stream) with the compute
  // stream and returns false; if `may_capture`, the second time also with a stream that captures.
  // `name` names the segment in a warning.
  using Steps = std::function<void(Stream& stream, bool is_capture)>;
  bool Run(const Key& key, bool may_capture, const Steps& steps,
           const std::function<std::string()>& name);

  Statistics statistics() const;

 private:
  struct Segment {
    bool has_run = false, cannot_be_captured = false;
    std::unique_ptr<CapturedGraph> graph;
  };

  std::unique_ptr<CapturedGraph> Capture(const Steps& steps,
                                         const std::function<std::string()>& name);
  void AbandonCapture() noexcept;

  Device& device_;
  std::map<Key, Segment> segments_;
  // Steps are captured on a separate stream, because other nets in other threads may launch on the
  // compute stream.
  std::unique_ptr<Stream> capture_stream_;
  bool is_capturing_ = false, is_loading_ = false;
  const double* loss_scale_ = nullptr;
  uint64_t appended_work_ = 0;  // of the last run that had some
  std::string refused_because_;
  std::set<std::string> warned_;
};

}  // namespace caffe
