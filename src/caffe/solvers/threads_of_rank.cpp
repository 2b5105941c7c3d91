#include "caffe/solvers/threads_of_rank.hpp"

#include <unistd.h>

#include <algorithm>

namespace caffe {

int NumProcessors() {
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

int ThreadsOfRank(int ranks_here, int threads) {
  const int processors = NumProcessors();
  return threads < processors ? threads : std::max(1, processors / ranks_here);
}

}  // namespace caffe
