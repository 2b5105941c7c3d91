// NVIDIA's libraries that kernels call, each loaded when it is first used.
#pragma once

#include "caffe/device/vendor_library.hpp"

namespace caffe::cuda {

// cuDNN loads NVRTC and cuBLASLt by their names, so the ones that are found here are loaded before
// it. Throws DeviceError where cuDNN was made for another CUDA than this program.
VendorLibrary& CudnnLibrary();
VendorLibrary& CublasLtLibrary();
VendorLibrary& NvrtcLibrary();

// Where no driver is there, loads the toolkit's stub of it, if that is found: without either cuDNN
// proposes no engine that is compiled at run time. Nothing can be run with it. Returns whether one
// of them is loaded.
bool LoadDriverOrStub();

// "9.19.0" of 91900.
std::string CudnnVersionText(size_t version);
// What is wrong with a cuDNN of this version that was made for this CUDA (both as they tell them);
// empty where nothing is. `path` is its file.
std::string CudnnProblemOf(size_t version, size_t cuda, const std::string& path);

}  // namespace caffe::cuda
