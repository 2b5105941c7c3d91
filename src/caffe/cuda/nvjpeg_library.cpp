#include "caffe/cuda/nvjpeg_library.hpp"

#include <cuda_runtime_api.h>

#include <type_traits>

#include "caffe/device/gpu_libraries.hpp"
#include "caffe/device/vendor_library.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda::nvjpeg {
namespace {

VendorLibrary& File() {
  static VendorLibrary library("nvJPEG", StrCat("libnvjpeg.so.", CUDART_VERSION / 1000), "nvjpeg");
  return library;
}

Library Load() {
  Library library;
  const auto find = [](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(File().Symbol(name));
  };
  find("nvjpegGetProperty", &library.GetProperty);
  find("nvjpegCreateEx", &library.CreateEx);
  find("nvjpegDestroy", &library.Destroy);
  find("nvjpegJpegStateCreate", &library.JpegStateCreate);
  find("nvjpegJpegStateDestroy", &library.JpegStateDestroy);
  find("nvjpegDecodeBatchedInitialize", &library.DecodeBatchedInitialize);
  find("nvjpegDecodeBatched", &library.DecodeBatched);
  return library;
}

GpuLibrary Describe() {
  return {.version = VersionOf(GetLibrary()), .path = File().path()};
}

const GpuLibraryRegistrar registrar(6, "nvJPEG", Describe);

}  // namespace

const Library& GetLibrary() {
  static const Library library = Load();
  return library;
}

}  // namespace caffe::cuda::nvjpeg
