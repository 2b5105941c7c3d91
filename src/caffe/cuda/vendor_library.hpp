// cuDNN and cuBLASLt, found when a CUDA device is first used: a build with CUDA starts on machines
// that have neither.
#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace caffe::cuda {

// A shared library of the vendor, loaded with its first symbol. Looked for in this order: the
// folders of CAFFE_CUDA_LIBRARY_PATH (separated by colons), where the loader looks, CUDA_HOME, the
// toolkit that this build was made with, and the wheels nvidia-* in Python's site-packages.
class VendorLibrary {
 public:
  // `name` for messages ("cuDNN 9"), the file ("libcudnn.so.9"), the folder of its wheel under
  // site-packages/nvidia ("cudnn").
  VendorLibrary(std::string name, std::string file, std::string wheel)
      : name_(std::move(name)), file_(std::move(file)), wheel_(std::move(wheel)) {}

  // Throws DeviceError saying where the library was looked for, or that it lacks the symbol.
  void* Symbol(const char* symbol);

 private:
  void* Load() const;

  const std::string name_, file_, wheel_;
  std::mutex mutex_;
  void* handle_ = nullptr;
};

// Folders that may hold NVIDIA's libraries, in order; without those that the loader knows.
std::vector<std::string> VendorLibraryFolders(const std::string& wheel);

}  // namespace caffe::cuda
