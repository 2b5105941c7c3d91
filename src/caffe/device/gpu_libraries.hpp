// Wrappers of NVIDIA libraries register here how their library is found.
#pragma once

#include "caffe/gpu_libraries.hpp"

namespace caffe {

// `place`: position of the library in the report. `describe` may throw DeviceError; the message
// becomes the library's problem.
struct GpuLibraryRegistrar {
  GpuLibraryRegistrar(int place, std::string name, GpuLibrary (*describe)());
};

// Wrappers call these when they ask their library for plans and when they build one.
void CountProposedGpuPlans();
void CountBuiltGpuPlan();

}  // namespace caffe
