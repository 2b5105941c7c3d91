// AppendedWork: what follows the last step of a run, and is recorded with it.
#pragma once

#include <cstdint>

#include "caffe/device/stream.hpp"

namespace caffe {

// A solver's update, say. The executor calls Prepare, Launch and Finish in this order, in each run;
// Launch not where the run's end is replayed, and neither it nor Finish when the run is broken off.
class AppendedWork {
 public:
  virtual ~AppendedWork() = default;
  // Before the run's first step: sends what the work reads of the host. Returns another number than
  // the last time when the work itself has changed, kernels or addresses, so that a recording of it
  // no longer serves.
  virtual uint64_t Prepare() = 0;
  // Launches kernels on the stream and does nothing else.
  virtual void Launch(Stream& stream) = 0;
  // After the run: says what the work has written.
  virtual void Finish() = 0;
};

}  // namespace caffe
