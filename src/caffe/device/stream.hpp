// Streams order the work of a device; events mark points in it, and graphs are captured sequences.
#pragma once

#include <cstddef>
#include <memory>

namespace caffe {

// A point in a stream's work. Made by Device::MakeEvent, placed by Stream::Record.
class Event {
 public:
  virtual ~Event() = default;
  // Blocks the caller until the work before the point is done. Returns at once if it was never
  // placed.
  virtual void Synchronize() = 0;
  // Returns true if that work is done; does not block.
  virtual bool IsReached() = 0;
  // Seconds of device time between two placed points, both reached.
  virtual double SecondsSince(const Event& earlier) const = 0;
};

// Captured work that is launched as a whole. Its kernels keep their addresses.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  // Number of kernels, copies and fills in it.
  virtual size_t num_nodes() const = 0;
};

// Work of a stream runs in order; two streams of one device may run at the same time. On the CPU
// every launch has finished when the call returns.
class Stream {
 public:
  virtual ~Stream() = default;

  // cudaStream_t; null on the CPU.
  virtual void* native() const = 0;
  // Blocks the caller until everything launched so far is done. Throws DeviceError for its errors.
  virtual void Synchronize() = 0;

  virtual void Record(Event& event) = 0;
  // Later launches on this stream wait for the point; the caller does not.
  virtual void Wait(const Event& event) = 0;

  // Ordered copies and fills. CopyFromHost accepts ordinary memory, which may be reused on return;
  // pinned memory must stay unchanged until the copy is done.
  virtual void CopyFromHost(void* device, const void* host, size_t bytes) = 0;
  virtual void CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual void FillZero(void* device, size_t bytes) = 0;

  // Between the two calls nothing runs: launches are captured. False if the device cannot capture.
  virtual bool can_capture() const { return false; }
  virtual void BeginCapture() {}
  // Throws DeviceError if something was launched that cannot be captured.
  virtual std::unique_ptr<CapturedGraph> EndCapture() { return nullptr; }
  virtual void Launch(const CapturedGraph&) {}

  // Keeps the stream busy for about so many seconds, in which the host can launch more work: the
  // end of that work then does not depend on the host's speed. Does nothing if launches are
  // synchronous.
  virtual void KeepBusy(double /*seconds*/) {}

  // An ordered copy between host or device memories.
  virtual void Copy(void* to, const void* from, size_t bytes) = 0;
};

}  // namespace caffe
