// Communicators between GPUs, by whatever library this build has for that.
#pragma once

#include <memory>
#include <vector>

#include "caffe/distributed/communicator.hpp"

namespace caffe {

using GpuCommunicatorFactory =
    std::vector<std::shared_ptr<Communicator>> (*)(const std::vector<int>& gpus);

// One rank per GPU, by number. Throws Unsupported where the build has no such library.
std::vector<std::shared_ptr<Communicator>> MakeGpuCommunicators(const std::vector<int>& gpus);

// A library announces itself by a static object of this class.
struct GpuCommunicatorRegistrar {
  explicit GpuCommunicatorRegistrar(GpuCommunicatorFactory factory);
};

}  // namespace caffe
