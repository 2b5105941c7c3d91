#include "caffe/cuda/nvidia_libraries.hpp"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <glog/logging.h>
#include <nvrtc.h>

#include <filesystem>
#include <mutex>
#include <system_error>

#include "caffe/device/gpu_libraries.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

constexpr int kCudaMajor = CUDART_VERSION / 1000;

template <typename Function>
Function* SymbolOf(VendorLibrary& library, Function*, const char* name) {
  return reinterpret_cast<Function*>(library.OptionalSymbol(name));
}
#define CAFFE_SYMBOL_OF(library, name) SymbolOf(library, &name, #name)

std::string CudaVersionText(size_t version) {
  return StrCat(version / 1000, ".", version % 1000 / 10);
}

// NVRTC loads its builtins by name, which works only if they are on the loader's path.
void LoadBuiltins(const std::string& nvrtc) {
  std::error_code ignored;
  const auto folder = std::filesystem::path(nvrtc).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("libnvrtc-builtins.so." + std::to_string(kCudaMajor), 0) == 0)
      dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

// Loads libraries that cuDNN opens by name. Without them only run-time compiled engines are
// missing.
void LoadForCudnn() {
  try {
    LoadBuiltins(NvrtcLibrary().path());
  } catch (const DeviceError& error) {
    LOG(WARNING) << error.what() << "; until then no convolutions are fused with what follows them";
  }
  try {
    CublasLtLibrary().path();
  } catch (const DeviceError&) {  // reported again by products
  }
}

VendorLibrary& UncheckedCudnn() {
  static VendorLibrary library("cuDNN 9", "libcudnn.so.9", "cudnn");
  static std::once_flag once;
  std::call_once(once, LoadForCudnn);
  return library;
}

size_t Answer(size_t (*function)()) {
  return function == nullptr ? 0 : function();
}

std::string ProblemOfCudnn() {
  VendorLibrary& cudnn = UncheckedCudnn();
  return CudnnProblemOf(Answer(CAFFE_SYMBOL_OF(cudnn, cudnnGetVersion)),
                        Answer(CAFFE_SYMBOL_OF(cudnn, cudnnGetCudartVersion)), cudnn.path());
}

GpuLibrary DescribeDriver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0)
    throw DeviceError("no NVIDIA driver is loaded (libcuda.so.1)");
  GpuLibrary driver{.version = CudaVersionText(static_cast<size_t>(version))};
  if (void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD))
    driver.path = PathOfLibrary(handle);
  if (version / 1000 < kCudaMajor)
    driver.problem =
        StrCat("serves CUDA up to ", driver.version, "; this program needs ", kCudaMajor, ".0");
  return driver;
}

GpuLibrary DescribeRuntime() {
  return {.version = CudaVersionText(CUDART_VERSION)};  // linked into libcaffe
}

GpuLibrary DescribeCudnn() {
  VendorLibrary& cudnn = UncheckedCudnn();
  const size_t version = Answer(CAFFE_SYMBOL_OF(cudnn, cudnnGetVersion));
  return {.version = CudnnVersionText(version), .path = cudnn.path(), .problem = ProblemOfCudnn()};
}

GpuLibrary DescribeCublasLt() {
  VendorLibrary& cublas = CublasLtLibrary();
  const size_t version = Answer(CAFFE_SYMBOL_OF(cublas, cublasLtGetVersion));
  return {.version = StrCat(version / 10000, ".", version % 10000 / 100, ".", version % 100),
          .path = cublas.path()};
}

GpuLibrary DescribeNvrtc() {
  VendorLibrary& nvrtc = NvrtcLibrary();
  int major = 0, minor = 0;
  if (const auto function = CAFFE_SYMBOL_OF(nvrtc, nvrtcVersion)) function(&major, &minor);
  return {.version = StrCat(major, ".", minor), .path = nvrtc.path()};
}

const GpuLibraryRegistrar registrars[] = {{0, "driver", DescribeDriver},
                                          {1, "CUDA runtime", DescribeRuntime},
                                          {2, "cuDNN", DescribeCudnn},
                                          {3, "cuBLASLt", DescribeCublasLt},
                                          {4, "NVRTC", DescribeNvrtc}};

}  // namespace

VendorLibrary& CudnnLibrary() {
  VendorLibrary& cudnn = UncheckedCudnn();
  static const std::string problem = ProblemOfCudnn();
  if (!problem.empty()) throw DeviceError("cuda: " + problem);
  return cudnn;
}

VendorLibrary& CublasLtLibrary() {
  static VendorLibrary library("cuBLASLt", StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR), "cublas",
                               VendorLibrary::Visibility::kOthers);
  return library;
}

VendorLibrary& NvrtcLibrary() {
  static VendorLibrary library("NVRTC", StrCat("libnvrtc.so.", kCudaMajor), "cuda_nvrtc",
                               VendorLibrary::Visibility::kOthers);
  return library;
}

bool LoadDriverOrStub() {
  static const bool is_loaded = [] {
    if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) return true;
    for (const std::string& folder : VendorLibraryFolders("cuda_runtime")) {
      const std::string stub = folder + "/stubs/libcuda.so";
      if (dlopen(stub.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
    }
    return false;
  }();
  return is_loaded;
}

std::string CudnnVersionText(size_t version) {
  return StrCat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

std::string CudnnProblemOf(size_t version, size_t cuda, const std::string& path) {
  if (cuda != 0 && cuda / 1000 != kCudaMajor) {
    return StrCat("cuDNN ", CudnnVersionText(version), " (", path, ") was made for CUDA ",
                  CudaVersionText(cuda), ", this program for ", CudaVersionText(CUDART_VERSION),
                  "; install cuDNN for CUDA ", kCudaMajor,
                  ", or name its folder in CAFFE_CUDA_LIBRARY_PATH");
  }
  if (version / 10000 != CUDNN_MAJOR || version < 90000) {
    return StrCat("cuDNN ", CudnnVersionText(version), " (", path, ") is not cuDNN ", CUDNN_MAJOR,
                  "; install that, or name its folder in CAFFE_CUDA_LIBRARY_PATH");
  }
  return "";
}

}  // namespace caffe::cuda
