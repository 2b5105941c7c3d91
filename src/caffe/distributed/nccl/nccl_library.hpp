// The NCCL library, loaded when several GPUs are first used: a build for GPUs runs without it.
#pragma once

#include <nccl.h>

namespace caffe::nccl {

// Functions of nccl.h under their own names.
struct Library {
  decltype(&ncclCommInitAll) CommInitAll;
  decltype(&ncclCommAbort) CommAbort;
  decltype(&ncclCommDestroy) CommDestroy;
  decltype(&ncclAllReduce) AllReduce;
  decltype(&ncclGroupStart) GroupStart;
  decltype(&ncclGroupEnd) GroupEnd;
  decltype(&ncclGetErrorString) GetErrorString;
};

// Throws Unsupported where there is no libnccl.so.2.
const Library& GetLibrary();

// Throws DeviceError naming the call unless `result` is success.
void Check(ncclResult_t result, const char* call);
void Check(cudaError_t result, const char* call);

}  // namespace caffe::nccl
