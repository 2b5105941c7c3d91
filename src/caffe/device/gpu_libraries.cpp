#include "caffe/device/gpu_libraries.hpp"

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

}  // namespace caffe
