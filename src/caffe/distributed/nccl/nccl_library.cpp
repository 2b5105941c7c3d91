#include "caffe/distributed/nccl/nccl_library.hpp"

#include <dlfcn.h>

#include <type_traits>

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
      throw Unsupported(StrCat("nccl: libnccl.so.2 has no ", name, "; install NCCL 2.18 or newer"));
    }
  };
  find("ncclGetUniqueId", &library.GetUniqueId);
  find("ncclCommInitRankConfig", &library.CommInitRankConfig);
  find("ncclCommGetAsyncError", &library.CommGetAsyncError);
  find("ncclCommFinalize", &library.CommFinalize);
  find("ncclCommDestroy", &library.CommDestroy);
  find("ncclCommAbort", &library.CommAbort);
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

}  // namespace caffe::nccl
