#include "caffe/cuda/cuda_check.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include "caffe/device/device_fault.hpp"

namespace caffe::cuda {
namespace {

// Errors without a name in older toolkits.
constexpr auto kContained = static_cast<cudaError_t>(226);
constexpr auto kTensorMemoryLeak = static_cast<cudaError_t>(721);
constexpr auto kExternalDevice = static_cast<cudaError_t>(911);

// Advice for the user, or null.
const char* Advice(cudaError_t status) {
  switch (static_cast<int>(status)) {
    case cudaErrorMemoryAllocation:
      return kNoMemoryAdvice;
    case cudaErrorInsufficientDriver:
      return "install a newer NVIDIA driver, or run on the CPU (--set solver_mode=CPU and no "
             "--gpu)";
    case cudaErrorNoDevice:
    case cudaErrorStubLibrary:
    case cudaErrorInitializationError:
    case cudaErrorSystemNotReady:
      return "check with nvidia-smi that a GPU and its driver are there, or run on the CPU "
             "(--set solver_mode=CPU and no --gpu)";
    case cudaErrorNoKernelImageForDevice:
      return "this build has no code for this GPU; configure with -DCMAKE_CUDA_ARCHITECTURES for "
             "it";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case kTensorMemoryLeak:
      return AreLaunchesBlocking() ? nullptr
                                   : "a kernel launched before has failed; run again with "
                                     "CUDA_LAUNCH_BLOCKING=1, which names its layer";
    case cudaErrorLaunchTimeout:
      return "the system ends kernels that take long on this GPU, which may have a display; lower "
             "batch_size, or train on a GPU without one";
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsClientTerminated:
    case kContained:
    case kExternalDevice:
      return "the device is lost; restore from the last snapshot on a working one";
    case cudaErrorDevicesUnavailable:
      return "other processes have the device for themselves or have filled it (nvidia-smi shows "
             "them and the compute mode); end them, or choose another device with --gpu";
    case cudaErrorUnknown:
      return "the driver does not say why; the system's log may (dmesg, lines with NVRM or Xid)";
    default:
      return nullptr;
  }
}

}  // namespace

// Based on CUDA's description of the errors. It does not call cudaErrorUnknown fatal, nor
// cudaErrorDevicesUnavailable, which may be temporary.
bool IsFault(cudaError_t status) {
  switch (static_cast<int>(status)) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorMpsClientTerminated:
    case kContained:
    case kTensorMemoryLeak:
    case kExternalDevice:
      return true;
    default:
      return false;
  }
}

bool AreLaunchesBlocking() {
  const char* const variable = std::getenv("CUDA_LAUNCH_BLOCKING");
  return variable != nullptr && std::string_view(variable) == "1";
}

void ForgetCudaError() {
  if (!IsFault(cudaPeekAtLastError())) cudaGetLastError();
}

void ThrowCudaError(cudaError_t status, const char* call) {
  ForgetCudaError();  // so that the next call does not report it again
  // Reduces "cudaMalloc(&p, bytes)" to "cudaMalloc": a message names calls, not our variables.
  const std::string_view name = std::string_view(call).substr(0, std::string_view(call).find('('));
  const char* advice = Advice(status);
  const std::string message =
      StrCat("cuda: ", name, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")",
             advice == nullptr ? "" : "; ", advice == nullptr ? "" : advice);
  if (IsFault(status) && !AreLaunchesBlocking()) throw DeviceFault(message);
  throw DeviceError(message);
}

}  // namespace caffe::cuda
