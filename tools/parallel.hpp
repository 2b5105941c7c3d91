// A loop over all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace caffe::tools {

// Calls work(i) for each i below `count`, in any order. `work` must not throw.
template <typename Work>
void ParallelFor(size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  const size_t wanted = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(run);
  run();
}

}  // namespace caffe::tools
