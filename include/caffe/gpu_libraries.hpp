// NVIDIA's libraries as this process finds them.
//
//   for (const GpuLibrary& library : GpuLibraries()) std::cout << library.name << library.path;
#pragma once

#include <cstdint>
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

// What this process has asked cuDNN for. A second start asks for nothing: files beside the
// algorithm cache know the plans. Zero in a build for CPUs. Thread-safe.
struct GpuPlans {
  int64_t proposed = 0;  // problems for which cuDNN proposed plans
  int64_t built = 0;     // plans
};
CAFFE_EXPORT GpuPlans GpuPlansSoFar();

}  // namespace caffe
