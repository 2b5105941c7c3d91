#include "caffe/distributed/nccl/nccl_library.hpp"

#include <type_traits>

#include "caffe/device/gpu_libraries.hpp"
#include "caffe/device/vendor_library.hpp"
#include "caffe/error.hpp"

namespace caffe::nccl {
namespace {

VendorLibrary& File() {
  static VendorLibrary library("NCCL 2", "libnccl.so.2", "nccl");
  return library;
}

Library Load() {
  Library library;
  try {
    File().path();
  } catch (const DeviceError& error) {
    throw Unsupported(StrCat("nccl: ", error.what(), "; or train on one GPU"));
  }
  const auto find = [&](const char* name, auto* function) {
    using Function = std::remove_pointer_t<decltype(function)>;
    *function = reinterpret_cast<Function>(File().OptionalSymbol(name));
    if (*function == nullptr) {
      throw Unsupported(
          StrCat("nccl: ", File().path(), " has no ", name, "; install NCCL 2.18 or newer"));
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

GpuLibrary Describe() {
  int version = 0;
  if (void* const function = File().OptionalSymbol("ncclGetVersion"))
    reinterpret_cast<decltype(&ncclGetVersion)>(function)(&version);
  GpuLibrary library{
      .version = StrCat(version / 10000, ".", version % 10000 / 100, ".", version % 100),
      .path = File().path()};
  if (version < 21800) library.problem = "is older than 2.18";
  return library;
}

const GpuLibraryRegistrar registrar(5, "NCCL", Describe);

}  // namespace

const Library& GetLibrary() {
  static const Library library = Load();
  return library;
}

}  // namespace caffe::nccl
