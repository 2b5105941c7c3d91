// No signal's handler runs in a thread that computes: some of oneDNN's kernels use the stack
// pointer for a workspace on the heap, and a handler's frame is written where that register points.
#pragma once

#include <omp.h>
#include <signal.h>

namespace caffe {

// While it lives, signals wait that would run a handler in this thread; faults of its own do not.
// The threads that OpenMP gives this thread go on without signals: what is sent to the process
// comes to others.
class SignalsHeld {
 public:
  SignalsHeld() {
    HoldTeam();  // first: while some of them wait to be asked, signals come to this thread
    HoldAll(&before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  static void HoldAll(sigset_t* before) {
    sigset_t held;
    ::sigfillset(&held);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
      ::sigdelset(&held, fault);
    ::pthread_sigmask(SIG_BLOCK, &held, before);
  }

  // Threads that OpenMP starts from now on inherit what this one holds. Those that it had started
  // for somebody else's loop do not.
  static void HoldTeam() {
    static thread_local int held = 1;
    const int threads = omp_get_max_threads();
    if (threads == held || omp_in_parallel() != 0) return;
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() > 0) HoldAll(nullptr);
    held = threads;
  }

  sigset_t before_;
};

}  // namespace caffe
