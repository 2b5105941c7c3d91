// A thread owned by an object; it inherits the settings (class Caffe) of the thread that starts it.
#pragma once

#include <atomic>
#include <thread>

#include "common.hpp"

CAFFE_BVLC_BEGIN
// Derived classes call StopInternalThread() in their own destructor, before their members are
// destroyed.
class InternalThread {
 public:
  InternalThread() : must_stop_(false), is_started_(false) {}
  virtual ~InternalThread();

  void StartInternalThread();
  // Asks the thread to end and waits for it.
  void StopInternalThread();
  bool is_started() const { return is_started_; }

 protected:
  // The thread's work. It ends when must_stop() is true.
  virtual void InternalThreadEntry() {}
  // Wakes a waiting thread when it is asked to end.
  virtual void WakeInternalThread() {}
  bool must_stop() const { return must_stop_; }

 private:
  std::atomic<bool> must_stop_;
  bool is_started_;
  std::thread thread_;

  DISABLE_COPY_AND_ASSIGN(InternalThread);
};

CAFFE_BVLC_END
