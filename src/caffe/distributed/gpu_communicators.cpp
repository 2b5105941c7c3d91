#include "caffe/distributed/gpu_communicators.hpp"

#include "caffe/error.hpp"

namespace caffe {
namespace {

GpuCommunicatorFactory& Factory() {
  static GpuCommunicatorFactory factory = nullptr;
  return factory;
}

}  // namespace

GpuCommunicatorRegistrar::GpuCommunicatorRegistrar(GpuCommunicatorFactory factory) {
  Factory() = factory;
}

std::vector<std::shared_ptr<Communicator>> MakeGpuCommunicators(const std::vector<int>& gpus) {
  if (Factory() == nullptr) {
    throw Unsupported(
        "this build has no library for several GPUs (NCCL, a build with CUDA and nccl.h); "
        "train on one");
  }
  return Factory()(gpus);
}

}  // namespace caffe
