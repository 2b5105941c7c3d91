// The NVIDIA libraries that kernels call; each is loaded on first use.
#pragma once

#include "caffe/device/vendor_library.hpp"

namespace caffe::cuda {

// cuDNN loads NVRTC and cuBLASLt by name, so the ones that are found here are loaded before it.
// Throws DeviceError if cuDNN was built for another CUDA version than this program.
VendorLibrary& CudnnLibrary();
VendorLibrary& CublasLtLibrary();
VendorLibrary& NvrtcLibrary();

// If there is no driver, loads the toolkit's stub of it if that is found: without either, cuDNN
// proposes no engine that is compiled at run time. Nothing can be run with the stub. Returns true
// if one of them is loaded.
bool LoadDriverOrStub();

// Converts 91900 to "9.19.0".
std::string CudnnVersionText(size_t version);
// Returns the problem of a cuDNN of this version, built for this CUDA version (both as reported by
// cuDNN); empty if there is none. `path` is its file.
std::string CudnnProblemOf(size_t version, size_t cuda, const std::string& path);

}  // namespace caffe::cuda
