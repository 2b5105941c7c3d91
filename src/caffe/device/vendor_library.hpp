// Vendor libraries, loaded when a device is first used: a build for GPUs also starts on machines
// without them.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// A shared library from NVIDIA, loaded with its first symbol. Search order: the folders of
// CAFFE_CUDA_LIBRARY_PATH (separated by colons), the loader's own search path, CUDA_HOME,
// CUDA_PATH, the toolkit that this build was made with, and the wheels nvidia-* in Python's
// site-packages: of the active environment, of the running interpreter, of python3, of the user and
// of the system. Thread-safe.
class CAFFE_EXPORT VendorLibrary {
 public:
  enum class Visibility {
    kOwn,     // RTLD_LOCAL: other libraries do not see its symbols
    kOthers,  // other libraries that load it by name get this one
  };

  // `name` for messages ("cuDNN 9"), `file` ("libcudnn.so.9"), and `wheel`, the folder of its wheel
  // in site-packages/nvidia ("cudnn").
  VendorLibrary(std::string name, std::string file, std::string wheel,
                Visibility visibility = Visibility::kOwn)
      : name_(std::move(name)),
        file_(std::move(file)),
        wheel_(std::move(wheel)),
        visibility_(visibility) {}

  // Throws DeviceError that says where the library was looked for, or that it lacks the symbol.
  void* Symbol(const char* symbol);
  // Returns null if the library has no such symbol.
  void* OptionalSymbol(const char* symbol);
  // Path of the loaded file. Throws as Symbol().
  std::string path();

 private:
  void* Loaded();
  void* Load() const;

  const std::string name_, file_, wheel_;
  const Visibility visibility_;
  std::mutex mutex_;
  void* handle_ = nullptr;
};

// Folders that may hold NVIDIA's libraries, in search order; without the loader's own.
std::vector<std::string> VendorLibraryFolders(const std::string& wheel);

// Path of the file of a loaded library. `handle`: from dlopen().
std::string PathOfLibrary(void* handle);

}  // namespace caffe
