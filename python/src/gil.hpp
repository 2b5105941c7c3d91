// The interpreter's lock. As pybind11's guards, but for its end: CPython (before 3.14) then ends
// each other thread that asks for the lock by unwinding its stack, which C++ does not survive. Here
// such a thread waits until the process ends.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace caffe::python {

// Calls `fn`, which is nothing but one call of CPython: what lies between would be unwound.
template <typename Fn>
auto UntilTheEnd(const Fn& fn) {
  try {
    return fn();
  } catch (const abi::__forced_unwind&) {
    while (true) ::pause();
  }
}

class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
    UntilTheEnd([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* const state_;
};

class GilAcquired {
 public:
  GilAcquired() : state_(UntilTheEnd(&Ensure)) {}
  GilAcquired(const GilAcquired&) = delete;
  GilAcquired& operator=(const GilAcquired&) = delete;
  ~GilAcquired() { PyGILState_Release(state_); }

 private:
  static PyGILState_STATE Ensure() {
    // A thread that Python does not know would make a state in an interpreter that has gone.
    while (PyGILState_GetThisThreadState() == nullptr && Py_IsInitialized() == 0) ::pause();
    return PyGILState_Ensure();
  }

  const PyGILState_STATE state_;
};

}  // namespace caffe::python
