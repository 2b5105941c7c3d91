// Keeps signal handlers out of threads that compute: some oneDNN kernels use the stack pointer for
// a workspace on the heap, where a handler's frame would be written.
#pragma once

#include <omp.h>
#include <signal.h>

namespace caffe {

// Blocks signals in this thread while it lives, except the thread's own faults. The thread's OpenMP
// team stays blocked afterwards; other threads take the signals sent to the process.
class SignalsHeld {
 public:
  SignalsHeld() {
    HoldTeam();  // first: until the team is blocked, signals come to this thread
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

  // Threads that OpenMP starts from now on inherit this thread's mask. Threads that it has already
  // started for other loops do not.
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
