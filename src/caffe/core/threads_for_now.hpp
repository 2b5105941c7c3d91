// ThreadsForNow: sets the calling thread's number of OpenMP threads for a scope.
#pragma once

#include <omp.h>

namespace caffe {

class ThreadsForNow {
 public:
  // Keeps the number, but restores it at the end of the scope if it was changed.
  ThreadsForNow() = default;
  explicit ThreadsForNow(int threads) { omp_set_num_threads(threads); }
  ThreadsForNow(const ThreadsForNow&) = delete;
  ThreadsForNow& operator=(const ThreadsForNow&) = delete;
  ~ThreadsForNow() { omp_set_num_threads(before_); }

 private:
  const int before_ = omp_get_max_threads();
};

}  // namespace caffe
