// ParallelFor: splits a loop among the caller's OpenMP threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

#include "caffe/core/signals_held.hpp"

namespace caffe {

// Calls fn(begin, end) on parts of [0, count), one per thread, each at least `grain` long. The
// parts depend only on count and thread count, so reductions over them are reproducible. An
// exception from fn ends its part; one of them is rethrown when all parts have ended.
template <typename Fn>
void ParallelFor(int64_t count, int64_t grain, const Fn& fn) {
  if (count <= 0) return;
  const int64_t most = std::max<int64_t>(1, count / std::max<int64_t>(grain, 1));
  const int threads = static_cast<int>(std::min<int64_t>(omp_get_max_threads(), most));
  if (threads == 1) {
    fn(int64_t{0}, count);
    return;
  }
  const SignalsHeld held;     // in threads that OpenMP may start here
  std::exception_ptr thrown;  // an exception must not leave the parallel region
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    const int64_t begin = count * thread / team, end = count * (thread + 1) / team;
    try {
      if (begin < end) fn(begin, end);
    } catch (...) {
#pragma omp critical(caffe_parallel_for)
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace caffe
