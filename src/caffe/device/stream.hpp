// The order in which a device works: streams, points in them, and recorded sequences of work.
#pragma once

#include <cstddef>
#include <memory>

namespace caffe {

// A point in a stream's work. Made by Device::MakeEvent, placed by Stream::Record.
class Event {
 public:
  virtual ~Event() = default;
  // Blocks the caller until the work before the point is done. At once if it was never placed.
  virtual void Synchronize() = 0;
  // Whether that work is done; does not block.
  virtual bool IsReached() = 0;
  // Seconds of device time between two placed points, both of them reached.
  virtual double SecondsSince(const Event& earlier) const = 0;
};

// Work recorded once and launched as a whole. Its kernels keep their addresses.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  // Number of kernels, copies and fills in it.
  virtual size_t num_nodes() const = 0;
};

// Work in order; two streams of one device may run at the same time. Everything launched on the CPU
// has finished when the call returns.
class Stream {
 public:
  virtual ~Stream() = default;

  // cudaStream_t; null on the CPU.
  virtual void* native() const = 0;
  // Blocks the caller until everything launched so far is done, and throws DeviceError for what
  // went wrong in it.
  virtual void Synchronize() = 0;

  virtual void Record(Event& event) = 0;
  // What is launched from now on waits for the point; the caller does not.
  virtual void Wait(const Event& event) = 0;

  // Ordered copies and fills. CopyFromHost may be given ordinary memory, which may be reused on
  // return; pinned memory must stay until the copy is done.
  virtual void CopyFromHost(void* device, const void* host, size_t bytes) = 0;
  virtual void CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual void FillZero(void* device, size_t bytes) = 0;

  // Between the two calls nothing runs: launches are recorded. False where the device cannot.
  virtual bool can_capture() const { return false; }
  virtual void BeginCapture() {}
  // Throws DeviceError when something was launched that cannot be recorded.
  virtual std::unique_ptr<CapturedGraph> EndCapture() { return nullptr; }
  virtual void Launch(const CapturedGraph&) {}

  // Makes what is launched next wait for about so many seconds, in which the host may launch more
  // of it: its end then does not depend on how fast the host is. Nothing where launches return when
  // they are done.
  virtual void KeepBusy(double /*seconds*/) {}

  // An ordered copy between memories of any kind.
  virtual void Copy(void* to, const void* from, size_t bytes) = 0;
};

}  // namespace caffe
