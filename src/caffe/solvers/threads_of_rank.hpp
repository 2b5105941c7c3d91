// How many threads a process of a run computes with.
#pragma once

namespace caffe {

// One of `ranks_here` processes of this machine: an equal share of its processors, or of those that
// a limit of its control groups leaves, at least 1, unless the number of threads is set
// (OMP_NUM_THREADS) or the process is bound to some processors. `threads`: that OpenMP would take
// by itself.
int ThreadsOfRank(int ranks_here, int threads);

// Processors of this machine.
int NumProcessors();

}  // namespace caffe
