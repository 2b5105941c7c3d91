// Number of compute threads of a process in a multi-process run.
#pragma once

namespace caffe {

// For one of `ranks_here` processes of this machine: an equal share of the processors, or of its
// control group's limit, at least 1. `threads` is OpenMP's own choice. It is kept if it is below
// that number of processors (because of OMP_NUM_THREADS, or because the process is bound), or if
// OMP_NUM_THREADS is set under a control group limit.
int ThreadsOfRank(int ranks_here, int threads);

// Processors of this machine.
int NumProcessors();

}  // namespace caffe
