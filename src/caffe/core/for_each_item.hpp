// Runs work on the items of a batch (images, sequences) in several threads.
#pragma once

#include <cstdint>
#include <exception>

#include "caffe/core/parallel_for.hpp"

namespace caffe {

// Calls fn(item) for each item in [0, count), each in one thread, so results do not depend on the
// number of threads as long as items write to memory of their own. Rethrows the exception of the
// first item that throws, as a loop would.
template <typename Fn>
void ForEachItem(int64_t count, const Fn& fn) {
  int64_t first_thrower = count;
  std::exception_ptr thrown;
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    int64_t item = begin;
    try {
      for (; item < end; ++item) fn(item);
    } catch (...) {
#pragma omp critical(caffe_for_each_item)
      if (item < first_thrower) {
        first_thrower = item;
        thrown = std::current_exception();
      }
    }
  });
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace caffe
