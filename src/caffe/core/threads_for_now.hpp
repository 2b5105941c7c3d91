// The number of threads that OpenMP gives the calling thread, for a while.
#pragma once

#include <omp.h>

namespace caffe {

class ThreadsForNow {
 public:
  // As many as there are: whoever changes the number has it undone.
  ThreadsForNow() = default;
  explicit ThreadsForNow(int threads) { omp_set_num_threads(threads); }
  ThreadsForNow(const ThreadsForNow&) = delete;
  ThreadsForNow& operator=(const ThreadsForNow&) = delete;
  ~ThreadsForNow() { omp_set_num_threads(before_); }

 private:
  const int before_ = omp_get_max_threads();
};

}  // namespace caffe
