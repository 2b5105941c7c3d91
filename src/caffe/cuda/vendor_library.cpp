#include "caffe/cuda/vendor_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The site-packages of each Python 3 below `prefix`, with the wheel's libraries in them. From CUDA
// 13 on all wheels but cuDNN's share one folder.
void AddWheels(const fs::path& prefix, const std::string& wheel,
               std::vector<std::string>* folders) {
  std::error_code ignored;
  for (const auto& python : fs::directory_iterator(prefix / "lib", ignored)) {
    if (python.path().filename().string().rfind("python3", 0) != 0) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const std::string& part : {wheel, std::string("cu13")}) {
        const fs::path folder = python.path() / packages / "nvidia" / part / "lib";
        if (fs::is_directory(folder, ignored)) folders->push_back(folder.string());
      }
    }
  }
}

}  // namespace

std::vector<std::string> VendorLibraryFolders(const std::string& wheel) {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string home = Environment(variable);
    if (!home.empty()) folders.push_back(home + "/lib64");
  }
  folders.insert(folders.end(), {CAFFE_CUDA_LIBRARY_DIR, "/usr/local/cuda/lib64"});
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = Environment(variable);
    if (!prefix.empty()) AddWheels(prefix, wheel, &folders);
  }
  const std::string home = Environment("HOME");
  if (!home.empty()) AddWheels(home + "/.local", wheel, &folders);
  for (const char* prefix : {"/usr/local", "/usr"}) AddWheels(prefix, wheel, &folders);
  return folders;
}

void* VendorLibrary::Load() const {
  std::vector<std::string> paths;
  std::istringstream own(Environment("CAFFE_CUDA_LIBRARY_PATH"));
  for (std::string folder; std::getline(own, folder, ':');) {
    if (!folder.empty()) paths.push_back(folder + "/" + file_);
  }
  paths.push_back(file_);
  for (const std::string& folder : VendorLibraryFolders(wheel_))
    paths.push_back(folder + "/" + file_);
  std::string reasons;
  for (const std::string& path : paths) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    std::error_code ignored;
    // A library that is there and does not load is worth a word; one that is not there is not.
    if (fs::exists(path, ignored)) reasons += std::string("; ") + dlerror();
  }
  throw DeviceError(StrCat("cuda: ", name_, " (", file_, ") is not found", reasons,
                           "; install it (the toolkit, your system's package, or pip install "
                           "nvidia-",
                           wheel_, "-cu13) or name its folder in CAFFE_CUDA_LIBRARY_PATH"));
}

void* VendorLibrary::Symbol(const char* symbol) {
  const std::lock_guard lock(mutex_);
  if (handle_ == nullptr) handle_ = Load();
  void* address = dlsym(handle_, symbol);
  if (address == nullptr) {
    throw DeviceError(StrCat("cuda: this ", name_, " (", file_, ") has no ", symbol,
                             "; install a newer one of the same major version"));
  }
  return address;
}

}  // namespace caffe::cuda
