#include "caffe/cuda/cuda_check.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include "caffe/device/device_fault.hpp"

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
      return AreLaunchesBlocking() ? nullptr
                                   : "a kernel launched before has failed; run again with "
                                     "CUDA_LAUNCH_BLOCKING=1, which names its layer";
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown:
      return "the device is lost or occupied; restore from the last snapshot on a working one";
    default:
      return nullptr;
  }
}

// Errors after which the device serves this process no more.
bool IsFault(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool AreLaunchesBlocking() {
  const char* const variable = std::getenv("CUDA_LAUNCH_BLOCKING");
  return variable != nullptr && std::string_view(variable) == "1";
}

void ForgetCudaError() {
  if (!IsFault(cudaPeekAtLastError())) cudaGetLastError();
}

void ThrowCudaError(cudaError_t status, const char* call) {
  ForgetCudaError();  // so that the next call does not report it again
  // "cudaMalloc" of "cudaMalloc(&p, bytes)": a message names calls, not our variables.
  const std::string_view name = std::string_view(call).substr(0, std::string_view(call).find('('));
  const char* advice = Advice(status);
  const std::string message =
      StrCat("cuda: ", name, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")",
             advice == nullptr ? "" : "; ", advice == nullptr ? "" : advice);
  if (IsFault(status) && !AreLaunchesBlocking()) throw DeviceFault(message);
  throw DeviceError(message);
}

}  // namespace caffe::cuda
