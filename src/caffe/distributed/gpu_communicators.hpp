// Communicators between GPUs, by whatever library this build has for that.
#pragma once

#include <memory>
#include <vector>

#include "caffe/distributed/communicator.hpp"

namespace caffe {

struct GpuCommunicatorFactory {
  std::vector<std::shared_ptr<Communicator>> (*in_process)(const std::vector<int>& gpus);
  std::shared_ptr<Communicator> (*of_rank)(std::shared_ptr<Communicator> host, int gpu);
};

// One rank per GPU of this process, by number. Throws Unsupported where the build has no such
// library.
std::vector<std::shared_ptr<Communicator>> MakeGpuCommunicators(const std::vector<int>& gpus);

// A rank whose tensors are in the memory of that GPU, among processes: `host` tells the ranks what
// they need to find each other, and continues to carry what is in host memory. All ranks call it,
// each with a GPU of its own. Throws as above.
std::shared_ptr<Communicator> MakeGpuCommunicator(std::shared_ptr<Communicator> host, int gpu);

// A library announces itself by a static object of this class.
struct GpuCommunicatorRegistrar {
  explicit GpuCommunicatorRegistrar(GpuCommunicatorFactory factory);
};

}  // namespace caffe
