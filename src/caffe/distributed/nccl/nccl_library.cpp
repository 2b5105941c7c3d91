#include "caffe/distributed/nccl/nccl_library.hpp"

#include <dlfcn.h>

#include "caffe/error.hpp"

namespace caffe::nccl {
namespace {

Library Load() {
  void* const handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw Unsupported(StrCat("nccl: ", dlerror(), "; install NCCL 2, or train on one GPU"));
  }
  Library library;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(handle, name));
    if (*function == nullptr) {
      throw Unsupported(StrCat("nccl: libnccl.so.2 has no ", name, "; install a newer NCCL"));
    }
  };
  find("ncclCommInitAll", &library.CommInitAll);
  find("ncclCommAbort", &library.CommAbort);
  find("ncclCommDestroy", &library.CommDestroy);
  find("ncclAllReduce", &library.AllReduce);
  find("ncclGroupStart", &library.GroupStart);
  find("ncclGroupEnd", &library.GroupEnd);
  find("ncclGetErrorString", &library.GetErrorString);
  return library;
}

}  // namespace

const Library& GetLibrary() {
  static const Library library = Load();
  return library;
}

void Check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw DeviceError(StrCat("nccl: ", call, ": ", GetLibrary().GetErrorString(result),
                           "; NCCL_DEBUG=WARN tells more"));
}

void Check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  throw DeviceError(StrCat("cuda: ", call, ": ", cudaGetErrorString(result)));
}

}  // namespace caffe::nccl
