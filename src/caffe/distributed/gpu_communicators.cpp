#include "caffe/distributed/gpu_communicators.hpp"

#include <optional>
#include <utility>

#include "caffe/error.hpp"

namespace caffe {
namespace {

std::optional<GpuCommunicatorFactory>& Factory() {
  static std::optional<GpuCommunicatorFactory> factory;
  return factory;
}

const GpuCommunicatorFactory& FactoryOrThrow() {
  if (!Factory()) {
    throw Unsupported(
        "this build has no library for several GPUs (NCCL, a build with CUDA and nccl.h); "
        "train on one");
  }
  return *Factory();
}

}  // namespace

GpuCommunicatorRegistrar::GpuCommunicatorRegistrar(GpuCommunicatorFactory factory) {
  Factory() = factory;
}

std::vector<std::shared_ptr<Communicator>> MakeGpuCommunicators(const std::vector<int>& gpus) {
  return FactoryOrThrow().in_process(gpus);
}

std::shared_ptr<Communicator> MakeGpuCommunicator(std::shared_ptr<Communicator> host, int gpu) {
  return FactoryOrThrow().of_rank(std::move(host), gpu);
}

}  // namespace caffe
