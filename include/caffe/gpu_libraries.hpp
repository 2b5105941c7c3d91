// NVIDIA's libraries as this process finds them.
//
//   for (const GpuLibrary& library : GpuLibraries()) std::cout << library.name << library.path;
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

struct GpuLibrary {
  std::string name;     // "cuDNN"
  std::string version;  // "9.19.0"; empty where the library is not found
  std::string path;     // of its file; empty for a part of the program
  std::string problem;  // why it does not serve; empty where it does
};

// Driver, runtime, cuDNN, cuBLASLt, NVRTC and NCCL, with what is wrong with them: missing, too old,
// or made for another CUDA than this program. Loads them. Empty in a build for CPUs.
CAFFE_EXPORT std::vector<GpuLibrary> GpuLibraries();

}  // namespace caffe
