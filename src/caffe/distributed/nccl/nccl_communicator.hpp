// Ranks that are GPUs, each driven by a thread of this process or by a process of its own.
#pragma once

#include <memory>
#include <vector>

#include "caffe/distributed/communicator.hpp"

namespace caffe {

// One communicator per GPU, by number, over device memory; numbers in host memory go from thread to
// thread. A reduction waits on a stream of its own for the point at which its memory is filled, and
// blocks only the calling thread. Throws Unsupported without NCCL, DeviceError for what it reports.
std::vector<std::shared_ptr<Communicator>> MakeNcclCommunicators(const std::vector<int>& gpus);

// The same for one rank of several processes, over `host`, by which they find each other. An error
// that `host` hears of ends what waits for other GPUs.
std::shared_ptr<Communicator> MakeNcclCommunicator(std::shared_ptr<Communicator> host, int gpu);

}  // namespace caffe
