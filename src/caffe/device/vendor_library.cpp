#include "caffe/device/vendor_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "caffe/error.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;

#ifndef CAFFE_CUDA_LIBRARY_DIR
constexpr const char* kToolkitOfBuild = "/usr/local/cuda/lib64";
#else
constexpr const char* kToolkitOfBuild = CAFFE_CUDA_LIBRARY_DIR;
#endif

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> FoldersIn(const std::string& list) {
  std::vector<std::string> folders;
  std::istringstream in(list);
  for (std::string folder; std::getline(in, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

// Sorted, so that every start finds the same library.
std::vector<fs::path> EntriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) entries.push_back(entry);
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Adds library folders of wheels in the site-packages of each Python 3 below `prefix`, the wheel's
// own folder first. From CUDA 13 on most wheels share one folder.
void AddWheels(const fs::path& prefix, const std::string& wheel,
               std::vector<std::string>* folders) {
  std::error_code ignored;
  const auto add = [&](const fs::path& folder) {
    if (fs::is_directory(folder / "lib", ignored)) folders->push_back((folder / "lib").string());
  };
  for (const fs::path& python : EntriesOf(prefix / "lib")) {
    if (python.filename().string().rfind("python3", 0) != 0) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path nvidia = python / packages / "nvidia";
      add(nvidia / wheel);
      for (const fs::path& other : EntriesOf(nvidia)) {
        if (other.filename() != wheel) add(other);
      }
    }
  }
}

// Adds "PREFIX" of PREFIX/bin/python3, and of the file that a symbolic link refers to.
void AddPrefixes(const fs::path& interpreter, std::vector<fs::path>* prefixes) {
  std::error_code ignored;
  if (!fs::exists(interpreter, ignored)) return;
  prefixes->push_back(interpreter.parent_path().parent_path());
  prefixes->push_back(fs::canonical(interpreter, ignored).parent_path().parent_path());
}

std::string FoundInPath(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  for (const std::string& folder : FoldersIn(Environment("PATH"))) {
    const std::string file = folder + "/" + program;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// The name by which this process was started: the interpreter of a virtual environment is a link,
// and only its name differs from the system's.
std::string ProgramOfProcess() {
  std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
  std::string program;
  std::getline(arguments, program, '\0');
  return FoundInPath(program);
}

std::vector<fs::path> PythonPrefixes() {
  std::vector<fs::path> prefixes;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = Environment(variable);
    if (!prefix.empty()) prefixes.emplace_back(prefix);
  }
  AddPrefixes(ProgramOfProcess(), &prefixes);
  AddPrefixes(FoundInPath("python3"), &prefixes);
  const std::string home = Environment("HOME");
  if (!home.empty()) prefixes.emplace_back(home + "/.local");
  prefixes.insert(prefixes.end(), {"/usr/local", "/usr"});
  return prefixes;
}

}  // namespace

std::vector<std::string> VendorLibraryFolders(const std::string& wheel) {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string home = Environment(variable);
    if (!home.empty()) folders.push_back(home + "/lib64");
  }
  folders.insert(folders.end(), {kToolkitOfBuild, "/usr/local/cuda/lib64"});
  const std::string conda = Environment("CONDA_PREFIX");
  if (!conda.empty()) folders.push_back(conda + "/lib");
  for (const fs::path& prefix : PythonPrefixes()) AddWheels(prefix, wheel, &folders);
  std::vector<std::string> once;
  for (const std::string& folder : folders) {
    if (std::find(once.begin(), once.end(), folder) == once.end()) once.push_back(folder);
  }
  return once;
}

std::string PathOfLibrary(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  std::error_code ignored;
  const fs::path real = fs::canonical(map->l_name, ignored);
  return real.empty() ? map->l_name : real.string();
}

void* VendorLibrary::Load() const {
  std::vector<std::string> paths;
  for (const std::string& folder : FoldersIn(Environment("CAFFE_CUDA_LIBRARY_PATH")))
    paths.push_back(folder + "/" + file_);
  paths.push_back(file_);
  for (const std::string& folder : VendorLibraryFolders(wheel_))
    paths.push_back(folder + "/" + file_);
  const int flags = RTLD_NOW | (visibility_ == Visibility::kOthers ? RTLD_GLOBAL : RTLD_LOCAL);
  std::string reasons;
  for (const std::string& path : paths) {
    if (void* handle = dlopen(path.c_str(), flags)) return handle;
    std::error_code ignored;
    // Report a library that exists and does not load, not one that is missing.
    if (fs::exists(path, ignored)) reasons += std::string("; ") + dlerror();
  }
  throw DeviceError(StrCat("cuda: ", name_, " (", file_, ") is not found", reasons,
                           "; install it (the toolkit, your system's package, or PyPI's nvidia-",
                           wheel_, "-cu13) or name its folder in CAFFE_CUDA_LIBRARY_PATH"));
}

void* VendorLibrary::Loaded() {
  const std::lock_guard lock(mutex_);
  if (handle_ == nullptr) handle_ = Load();
  return handle_;
}

void* VendorLibrary::OptionalSymbol(const char* symbol) {
  return dlsym(Loaded(), symbol);
}

void* VendorLibrary::Symbol(const char* symbol) {
  void* address = OptionalSymbol(symbol);
  if (address == nullptr) {
    throw DeviceError(StrCat("cuda: this ", name_, " (", path(), ") has no ", symbol,
                             "; install a newer one of the same major version"));
  }
  return address;
}

std::string VendorLibrary::path() {
  return PathOfLibrary(Loaded());
}

}  // namespace caffe
