// A vendor's libraries, found when a device is first used: a build for GPUs starts on machines that
// have none of them.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// A shared library of NVIDIA's, loaded with its first symbol. Looked for in this order: the folders
// of CAFFE_CUDA_LIBRARY_PATH (separated by colons), where the loader looks, CUDA_HOME, the toolkit
// that this build was made with, and the wheels nvidia-* in Python's site-packages: of the
// environment's variables, of the running interpreter, of python3, of the user and of the system.
// Thread-safe.
class CAFFE_EXPORT VendorLibrary {
 public:
  enum class Visibility {
    kOwn,     // nobody else sees its symbols
    kOthers,  // libraries that load it by name get this one
  };

  // `name` for messages ("cuDNN 9"), the file ("libcudnn.so.9"), the folder of its wheel under
  // site-packages/nvidia ("cudnn").
  VendorLibrary(std::string name, std::string file, std::string wheel,
                Visibility visibility = Visibility::kOwn)
      : name_(std::move(name)),
        file_(std::move(file)),
        wheel_(std::move(wheel)),
        visibility_(visibility) {}

  // Throws DeviceError saying where the library was looked for, or that it lacks the symbol.
  void* Symbol(const char* symbol);
  // Null where the library has no such symbol.
  void* OptionalSymbol(const char* symbol);
  // Where it was found. Throws as Symbol().
  std::string path();

 private:
  void* Loaded();
  void* Load() const;

  const std::string name_, file_, wheel_;
  const Visibility visibility_;
  std::mutex mutex_;
  void* handle_ = nullptr;
};

// Folders that may hold NVIDIA's libraries, in order; without those that the loader knows.
std::vector<std::string> VendorLibraryFolders(const std::string& wheel);

// Where a loaded library's file is: of the handle that dlopen() gave.
std::string PathOfLibrary(void* handle);

}  // namespace caffe
