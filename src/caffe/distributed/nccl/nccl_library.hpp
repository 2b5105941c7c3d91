// The NCCL library, loaded when several GPUs are first used: a build for GPUs runs without it.
#pragma once

#include <nccl.h>

namespace caffe::nccl {

// Functions of nccl.h under their own names.
struct Library {
  decltype(&ncclGetUniqueId) GetUniqueId;
  decltype(&ncclCommInitRankConfig) CommInitRankConfig;
  decltype(&ncclCommGetAsyncError) CommGetAsyncError;
  decltype(&ncclCommFinalize) CommFinalize;
  decltype(&ncclCommDestroy) CommDestroy;
  decltype(&ncclCommAbort) CommAbort;
  decltype(&ncclAllReduce) AllReduce;
  decltype(&ncclGroupStart) GroupStart;
  decltype(&ncclGroupEnd) GroupEnd;
  decltype(&ncclGetErrorString) GetErrorString;
};

// Throws Unsupported where there is no libnccl.so.2.
const Library& GetLibrary();

}  // namespace caffe::nccl
