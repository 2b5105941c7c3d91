#include "caffe/cuda/cudnn_error.hpp"

#include <link.h>

#include <filesystem>
#include <system_error>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

// The loaded files of cuDNN, which loads its parts from wherever the loader finds them.
std::string LoadedParts() {
  std::string parts;
  const auto add = [](dl_phdr_info* info, size_t, void* to) {
    const std::filesystem::path path = info->dlpi_name;
    auto& list = *static_cast<std::string*>(to);
    std::error_code ignored;
    if (path.filename().string().starts_with("libcudnn"))
      list +=
          (list.empty() ? "" : ", ") + std::filesystem::weakly_canonical(path, ignored).string();
    return 0;
  };
  dl_iterate_phdr(add, &parts);
  return parts.empty() ? "none" : parts;
}

}  // namespace

bool IsOfMixedParts(std::string_view error) {
  return error.find("CUDNN_STATUS_SUBLIBRARY_") != std::string_view::npos;
}

std::string MixedPartsAdvice() {
  return StrCat("; parts of cuDNN are missing or of different versions: loaded are ", LoadedParts(),
                "; install one version, or name its folder in ",
                "CAFFE_CUDA_LIBRARY_PATH and leave others out of LD_LIBRARY_PATH");
}

std::string CudnnErrorText(cudnnStatus_t status, const char* call) {
  const std::string text = StrCat("cuda: ", call, ": ", cudnnGetErrorString(status));
  if (IsOfMixedParts(cudnnGetErrorString(status))) return text + MixedPartsAdvice();
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
    return StrCat(text, "; ", kNoMemoryAdvice);
  return text + "; CUDNN_LOGLEVEL_DBG=1 CUDNN_LOGDEST_DBG=stderr tell more";
}

}  // namespace caffe::cuda
