#include "caffe/core/module.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "caffe/error.hpp"

namespace caffe {

std::string BesideLibrary(const std::string& file) {
  Dl_info library;
  const bool is_known = dladdr(reinterpret_cast<const void*>(&BesideLibrary), &library) != 0;
  CAFFE_ASSERT(is_known);
  // Not std::filesystem::path: libstdc++'s path is corrupted if memory runs out during such a
  // change.
  const std::string path = library.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + file;
}

void* LoadModule(const std::string& name, const char* symbol, const std::string& need) {
  const std::string path = BesideLibrary("lib" + name + ".so");
  if (!std::filesystem::exists(path)) {
    throw Unsupported(StrCat(need, ": ", path, " is not there; build all of Cortado ",
                             "(cmake --build --preset cpu-release), or install all of it"));
  }
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw Unsupported(StrCat(need, " (", dlerror(), ")"));
  void* address = dlsym(module, symbol);
  CAFFE_ASSERT(address != nullptr, path, " is not the module that this library expects");
  return address;
}

}  // namespace caffe
