// Runs work in a separate process, so that a crash or a hang is a finding and does not end the
// fuzzer.
#pragma once

#include <omp.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "caffe/error.hpp"

namespace caffe::fuzz {

// Runs `work` in a separate process. Returns its status from waitpid().
template <typename Work>
int StatusOf(const Work& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw IoError(StrCat("cannot start a process: ", std::strerror(errno)));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would receive its findings
    omp_set_num_threads(1);
    work();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Ends this process by SIGPROF unless it is called again within this many seconds of processor
// time. The time of other processes does not count.
inline void LimitProcessorSeconds(unsigned seconds) {
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

// Describes the status of work with a limit of this many seconds, set by alarm() or
// LimitProcessorSeconds().
inline std::string DescribeEnd(int status, unsigned seconds) {
  if (!WIFSIGNALED(status)) return StrCat("it ended the process with ", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF)
    return StrCat("it takes more than ", seconds, " s");
  return StrCat("signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
}

}  // namespace caffe::fuzz
