// Guards for the interpreter's lock, like pybind11's except at the interpreter's end: then CPython
// (before 3.14) ends every other thread that asks for the lock by unwinding its stack, which C++
// does not survive. With these guards such a thread waits until the process ends.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace caffe::python {

// Calls `fn`, which must consist of a single CPython call, because frames in between are unwound.
template <typename Fn>
auto UntilTheEnd(const Fn& fn) {
  try {
    return fn();
  } catch (const abi::__forced_unwind&) {
    while (true) ::pause();
  }
}

// Computes without the interpreter's lock. A process whose interpreter has ended while a thread was
// in such a section ends without the libraries' cleanup, because that would free memory that the
// thread computes with: OpenBLAS unmaps its buffers.
class GilReleased {
 public:
  GilReleased() : outer_(std::exchange(of_thread_, PyEval_SaveThread())) { ++count_; }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
    UntilTheEnd([] { PyEval_RestoreThread(of_thread_); });
    of_thread_ = outer_;
    --count_;
  }

  // Prepares the process's end. For Py_AtExit(): so late that no other cleanup comes first.
  static void AtInterpretersEnd() {
    ::on_exit(
        [](int status, void*) {
          if (count_ == 0) return;
          std::fflush(nullptr);
          ::_exit(status);
        },
        nullptr);
  }

 private:
  friend class GilAcquired;

  inline static std::atomic<int> count_ = 0;
  inline static thread_local PyThreadState* of_thread_ = nullptr;  // null: not in a section
  PyThreadState* const outer_;
};

class GilAcquired {
 public:
  GilAcquired() : released_(std::exchange(GilReleased::of_thread_, nullptr)) {
    if (released_ != nullptr) {
      UntilTheEnd([this] { PyEval_RestoreThread(released_); });
    } else {
      state_ = UntilTheEnd(&Ensure);
    }
  }
  GilAcquired(const GilAcquired&) = delete;
  GilAcquired& operator=(const GilAcquired&) = delete;
  ~GilAcquired() {
    if (released_ != nullptr) {
      GilReleased::of_thread_ = PyEval_SaveThread();
    } else {
      PyGILState_Release(state_);
    }
  }

 private:
  static PyGILState_STATE Ensure() {
    // A thread unknown to Python would create a thread state in an interpreter that has ended.
    while (PyGILState_GetThisThreadState() == nullptr && Py_IsInitialized() == 0) ::pause();
    return PyGILState_Ensure();
  }

  PyThreadState* const released_;  // by this thread's section; null: it is in none
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

}  // namespace caffe::python
