#include "caffe/cuda/cuda_check.hpp"

#include <string>
#include <string_view>

namespace caffe::cuda {
namespace {

// What the user can do, where there is something.
const char* Advice(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "lower batch_size (caffe plan shows what a net needs), or free the device";
    case cudaErrorInsufficientDriver:
      return "install a newer NVIDIA driver, or run on the CPU (solver_mode: CPU and no -gpu)";
    case cudaErrorNoDevice:
    case cudaErrorStubLibrary:
    case cudaErrorInitializationError:
    case cudaErrorSystemNotReady:
      return "check with nvidia-smi that a GPU and its driver are there, or run on the CPU "
             "(solver_mode: CPU and no -gpu)";
    case cudaErrorNoKernelImageForDevice:
      return "this build has no code for this GPU; configure with -DCMAKE_CUDA_ARCHITECTURES for "
             "it";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
      return "the error is of a kernel launched before; CUDA_LAUNCH_BLOCKING=1 names its step";
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown:
      return "the device is lost or occupied; restore from the last snapshot on a working one";
    default:
      return nullptr;
  }
}

}  // namespace

void ThrowCudaError(cudaError_t status, const char* call) {
  cudaGetLastError();  // what can be forgotten is, so that the next call does not report it again
  // "cudaMalloc" of "cudaMalloc(&p, bytes)": a message names calls, not our variables.
  const std::string_view name = std::string_view(call).substr(0, std::string_view(call).find('('));
  const char* advice = Advice(status);
  throw DeviceError(StrCat("cuda: ", name, ": ", cudaGetErrorString(status), " (",
                           cudaGetErrorName(status), ")", advice == nullptr ? "" : "; ",
                           advice == nullptr ? "" : advice));
}

}  // namespace caffe::cuda
