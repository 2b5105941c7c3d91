#include "caffe/device/gpu_libraries.hpp"

#include <atomic>
#include <map>
#include <utility>

#include "caffe/error.hpp"

namespace caffe {
namespace {

using Describe = GpuLibrary (*)();

std::map<int, std::pair<std::string, Describe>>& Registered() {
  static std::map<int, std::pair<std::string, Describe>> libraries;
  return libraries;
}

std::atomic<int64_t> plans_proposed = 0, plans_built = 0;

}  // namespace

GpuLibraryRegistrar::GpuLibraryRegistrar(int place, std::string name, Describe describe) {
  Registered()[place] = {std::move(name), describe};
}

std::vector<GpuLibrary> GpuLibraries() {
  std::vector<GpuLibrary> libraries;
  for (const auto& [place, library] : Registered()) {
    GpuLibrary described;
    try {
      described = library.second();
    } catch (const Error& error) {
      described.problem = error.what();
    }
    described.name = library.first;
    libraries.push_back(std::move(described));
  }
  return libraries;
}

void CountProposedGpuPlans() {
  ++plans_proposed;
}

void CountBuiltGpuPlan() {
  ++plans_built;
}

GpuPlans GpuPlansSoFar() {
  return {plans_proposed, plans_built};
}

}  // namespace caffe
