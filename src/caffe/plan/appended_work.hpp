// AppendedWork: work that follows the last step of a run and is captured with it.
#pragma once

#include <cstdint>

#include "caffe/device/stream.hpp"

namespace caffe {

// A solver's update, for example. In each run, the executor calls Prepare, Launch and Finish in
// this order. It skips Launch if the end of the run is replayed, and Launch and Finish if the run
// is aborted.
class AppendedWork {
 public:
  virtual ~AppendedWork() = default;
  // Called before the run's first step: sends the data that the work reads from the host. Must
  // return a new number if the work's kernels or addresses have changed since the last call,
  // because a captured graph is then stale.
  virtual uint64_t Prepare() = 0;
  // Launches kernels on the stream; must not do anything else.
  virtual void Launch(Stream& stream) = 0;
  // Called after the run: marks what the work has written.
  virtual void Finish() = 0;
};

}  // namespace caffe
