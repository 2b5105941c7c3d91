// The NVIDIA libraries that this process finds.
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
  std::string version;  // "9.19.0"; empty if the library is not found
  std::string path;     // path of the library file; empty if it is linked into the program
  std::string problem;  // why it cannot be used; empty if it can
};

// Lists driver, runtime, cuDNN, cuBLASLt, NVRTC and NCCL with their problems: missing, too old, or
// built for another CUDA version than this program. Loads them. Empty in a CPU build.
CAFFE_EXPORT std::vector<GpuLibrary> GpuLibraries();

// Counts this process's requests to cuDNN. A second start makes none, because files next to the
// algorithm cache store the plans. Zero in a CPU build. Thread-safe.
struct GpuPlans {
  int64_t proposed = 0;  // problems for which cuDNN was asked for plans
  int64_t built = 0;     // plans
};
CAFFE_EXPORT GpuPlans GpuPlansSoFar();

}  // namespace caffe
