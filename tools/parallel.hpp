// A parallel loop over all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "caffe/core/processors.hpp"

namespace caffe::tools {

// Calls work(i) for each i below `count`, in any order. Rethrows an exception of a call after the
// running calls have finished.
template <typename Work>
void ParallelFor(size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto run = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  };
  const size_t wanted = std::min<size_t>(count, static_cast<size_t>(UsableProcessors()));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < wanted; ++i) threads.emplace_back(run);
    run();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace caffe::tools
