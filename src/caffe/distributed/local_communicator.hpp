// Ranks that are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "caffe/distributed/communicator.hpp"

namespace caffe {

// Communicators of ranks 0 to ranks - 1, over host memory. A collective divides the elements among
// the ranks' threads, and adds each up in double, in order of rank. Throws InvalidArgument unless
// ranks is positive.
std::vector<std::shared_ptr<Communicator>> MakeLocalCommunicators(int ranks);

}  // namespace caffe
