#include "caffe/distributed/threads_of_rank.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "caffe/core/processors.hpp"

namespace caffe {

int NumProcessors() {
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

int ThreadsOfRank(int ranks_here, int threads) {
  const int all = NumProcessors();
  const auto time =
      static_cast<int>(std::ceil(std::min<double>(ProcessorTime().value_or(all), all)));
  const int processors = std::max(1, time);
  if (processors < all && std::getenv("OMP_NUM_THREADS") != nullptr) return threads;
  return threads < processors ? threads : std::max(1, processors / ranks_here);
}

}  // namespace caffe
