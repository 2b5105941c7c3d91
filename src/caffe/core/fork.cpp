#include "caffe/core/fork.hpp"

#include <pthread.h>

#include <atomic>

namespace caffe {
namespace {

std::atomic<int> depth = 0;

[[maybe_unused]] const int counts_forks =
    ::pthread_atfork(nullptr, nullptr, [] { depth.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

int ForkDepth() {
  return depth.load(std::memory_order_relaxed);
}

}  // namespace caffe
