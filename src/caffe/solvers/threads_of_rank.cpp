#include "caffe/solvers/threads_of_rank.hpp"

#include <unistd.h>

#include <algorithm>

#include "caffe/core/processors.hpp"

namespace caffe {

int NumProcessors() {
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

int ThreadsOfRank(int ranks_here, int threads) {
  const int all = NumProcessors();
  const int processors = ProcessorTime().value_or(all) < all ? UsableProcessors() : all;
  return threads < processors ? threads : std::max(1, processors / ranks_here);
}

}  // namespace caffe
