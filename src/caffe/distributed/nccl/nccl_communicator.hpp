// Ranks that are GPUs of this machine, each driven by a thread of this process.
#pragma once

#include <memory>
#include <vector>

#include "caffe/distributed/communicator.hpp"

namespace caffe {

// One communicator per GPU, by number, over device memory; numbers in host memory go from thread to
// thread. A reduction waits on a stream of its own for what the compute stream has been given by
// then, and blocks only the calling thread. Throws Unsupported without NCCL, DeviceError for what
// it reports.
std::vector<std::shared_ptr<Communicator>> MakeNcclCommunicators(const std::vector<int>& gpus);

}  // namespace caffe
