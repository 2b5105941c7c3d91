// Who wraps a library of NVIDIA's says here how it is found.
#pragma once

#include "caffe/gpu_libraries.hpp"

namespace caffe {

// `place`: libraries are told in the order of these numbers. `describe` may throw DeviceError,
// which becomes the library's problem.
struct GpuLibraryRegistrar {
  GpuLibraryRegistrar(int place, std::string name, GpuLibrary (*describe)());
};

// Who asks the library for plans counts here.
void CountProposedGpuPlans();
void CountBuiltGpuPlan();

}  // namespace caffe
