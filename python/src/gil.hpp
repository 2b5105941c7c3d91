// Guards for the interpreter's lock, like pybind11's except at the interpreter's end: then CPython
// (before 3.14) ends every other thread that asks for the lock by unwinding its stack, which C++
// does not survive. With these guards such a thread waits until the process ends.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

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
    // A thread unknown to Python would create a thread state in an interpreter that has ended.
    while (PyGILState_GetThisThreadState() == nullptr && Py_IsInitialized() == 0) ::pause();
    return PyGILState_Ensure();
  }

  const PyGILState_STATE state_;
};

}  // namespace caffe::python
