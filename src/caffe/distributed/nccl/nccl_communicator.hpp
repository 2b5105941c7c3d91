// Ranks that are GPUs of this machine, each driven by a thread of this process.
#pragma once

#include <memory>
#include <vector>

#include "caffe/distributed/communicator.hpp"

namespace caffe {

struct NcclRank {
  int device = 0;                  // CUDA's number
  void* compute_stream = nullptr;  // cudaStream_t whose work fills the tensors to be reduced
};

// One communicator per rank, over device memory; numbers in host memory go from thread to thread. A
// reduction waits on a stream of its own for what the compute stream has been given by then, and
// blocks only the calling thread. Throws Unsupported without NCCL, DeviceError for what it reports.
std::vector<std::shared_ptr<Communicator>> MakeNcclCommunicators(
    const std::vector<NcclRank>& ranks);

}  // namespace caffe
