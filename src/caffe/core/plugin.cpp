#include "caffe/plugin.hpp"

#include <dlfcn.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "caffe/core/module.hpp"
#include "caffe/core/plugin_registration.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

using Registrations = std::vector<PluginRegistration>;

thread_local Registrations* kept_back = nullptr;

class KeepingBack {
 public:
  explicit KeepingBack(Registrations* registrations)
      : before_(std::exchange(kept_back, registrations)) {}
  ~KeepingBack() { kept_back = before_; }
  KeepingBack(const KeepingBack&) = delete;
  KeepingBack& operator=(const KeepingBack&) = delete;

 private:
  Registrations* const before_;
};

struct Loaded {
  void* library;
  PluginInfo info;
};

struct Plugins {
  std::recursive_mutex mutex;  // recursive, because a plug-in may load another
  std::vector<Loaded> all;
  std::map<void*, std::string> refused;  // library -> error message
};

Plugins& AllPlugins() {
  static Plugins plugins;
  return plugins;
}

// Absolute path of `file`. Also finds a file in the current folder, where the system's loader would
// not look.
std::string PathOf(const std::string& file) {
  Require(!file.empty(), "a plug-in's name is empty; give the path of a shared library");
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    const bool is_path = file.find('/') != std::string::npos;
    Require(!is_path, "plug-in '", file, "': no such file; paths are relative to the folder in ",
            "which the program runs (", std::filesystem::current_path(error).string(), ")");
    return file;
  }
  return std::filesystem::absolute(file).string();
}

// If the loader's message says that libcaffe_compat is missing, loads it and returns true. Programs
// find it by their rpath; an interpreter that has imported libcaffe does not.
bool LoadLackingCompat(const std::string& said) {
  const std::string lacking = said.substr(0, said.find(':'));
  return lacking.starts_with("libcaffe_compat.so") &&
         dlopen(BesideLibrary(lacking).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
}

std::string LoadersReason() {
  const char* const said = dlerror();
  return said != nullptr ? said : "no reason is known";
}

// `refused`: libraries that stay in memory but must not be used.
void* Open(const std::string& file, Registrations* registrations,
           std::map<void*, std::string>* refused) {
  const std::string path = PathOf(file);
  std::error_code ignored;  // the loader reports the reason
  Require(!std::filesystem::is_fifo(path, ignored), "plug-in '", file,
          "' is a pipe; give the shared library");
  const KeepingBack keeping_back(registrations);
  // dlopen is declared noexcept, so for a direct call the compiler would drop the handler.
  void* (*const volatile open_library)(const char*, int) = dlopen;
  void* library = nullptr;
  std::string reason, said;
  try {
    library = open_library(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) said = LoadersReason();
    if (library == nullptr && LoadLackingCompat(said)) {
      library = open_library(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) said = LoadersReason();
    }
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "something that is not a std::exception";
  }
  if (!reason.empty()) {
    const bool is_of_protobuf = reason.find("Database") != std::string::npos;
    const std::string message =
        StrCat("plug-in '", file, "' threw while it was loaded: ", reason,
               is_of_protobuf ? "; another plug-in has a .proto file of this name or an option of "
                                "this number: give them others"
                              : "",
               "; end this process before it loads anything else, because the system's loader may "
               "hang");
    (*refused)[dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)] = message;
    throw InvalidArgument(message);
  }
  if (library != nullptr) return library;
  Require(
      std::filesystem::exists(path) || file.find('/') != std::string::npos, "plug-in '", file,
      "': there is no such file in the folder in which the program runs, and the system's loader "
      "finds no library of this name that can be loaded (",
      said, ")");
  throw InvalidArgument(
      StrCat("plug-in '", file, "' cannot be loaded: ", said,
             "; it has to be a shared library (-shared -fPIC) compiled and linked "
             "against Cortado ",
             CAFFE_VERSION));
}

// True if `address` is in `library` itself, not in one of its dependencies.
bool IsFrom(void* library, const void* address) {
  Dl_info holder;
  if (dladdr(address, &holder) == 0) return false;
  void* const other = dlopen(holder.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (other != nullptr) dlclose(other);
  return other == library;
}

const CaffePlugin& DescriptorOf(void* library, const std::string& file) {
  const void* address = dlsym(library, "caffe_plugin");
  Require(address != nullptr && IsFrom(library, address), "plug-in '", file,
          "' has no symbol caffe_plugin; write CAFFE_PLUGIN(\"name\", \"version\") in one of its "
          "files (caffe/plugin.hpp)");
  const auto& descriptor = *static_cast<const CaffePlugin*>(address);
  // Other versions of the interface share only these two fields.
  constexpr size_t kLeast = offsetof(CaffePlugin, caffe_version);
  Require(descriptor.struct_size >= kLeast && descriptor.plugin_interface == CAFFE_PLUGIN_INTERFACE,
          "plug-in '", file, "' was compiled for plug-in interface ",
          descriptor.struct_size >= kLeast ? descriptor.plugin_interface : 0, ", and Cortado ",
          CAFFE_VERSION, " has interface ", CAFFE_PLUGIN_INTERFACE,
          "; compile it again with this version's headers");
  Require(descriptor.struct_size >= sizeof(CaffePlugin), "plug-in '", file,
          "' describes itself in ", descriptor.struct_size, " bytes, and interface ",
          CAFFE_PLUGIN_INTERFACE, " wants ", sizeof(CaffePlugin),
          "; compile it again with this version's headers");
  return descriptor;
}

PluginInfo Describe(const CaffePlugin& descriptor, const std::string& file) {
  PluginInfo info{.path = PathOf(file), .name = descriptor.name, .version = descriptor.version};
  if (info.name.empty()) info.name = std::filesystem::path(file).stem().string();
  return info;
}

// Throws if one of the registrations is invalid.
PluginInfo Check(void* library, const std::string& file, const Registrations& registrations) {
  PluginInfo info = Describe(DescriptorOf(library, file), file);
  WithContext(StrCat("plug-in '", file, "'"), [&] {
    for (const PluginRegistration& one : registrations) {
      one.check();
      if (one.layer_type.empty()) continue;
      const auto twice =
          std::find(info.layer_types.begin(), info.layer_types.end(), one.layer_type);
      Require(twice == info.layer_types.end(), "layer type '", one.layer_type,
              "' is registered twice; give one of the two another name");
      info.layer_types.push_back(one.layer_type);
    }
  });
  std::sort(info.layer_types.begin(), info.layer_types.end());
  return info;
}

}  // namespace

bool KeepBackForPlugin(PluginRegistration registration) {
  if (kept_back == nullptr) return false;
  kept_back->push_back(std::move(registration));
  return true;
}

PluginInfo LoadPlugin(const std::string& file) {
  Plugins& plugins = AllPlugins();
  const std::scoped_lock lock(plugins.mutex);
  Registrations registrations;
  // A refused library stays in memory, because its constructors may have handed out its code.
  void* const library = Open(file, &registrations, &plugins.refused);
  const auto known = std::find_if(plugins.all.begin(), plugins.all.end(),
                                  [&](const Loaded& one) { return one.library == library; });
  if (known != plugins.all.end()) return known->info;
  if (const auto refused = plugins.refused.find(library); refused != plugins.refused.end()) {
    throw InvalidArgument(refused->second);
  }
  PluginInfo info;
  try {
    info = Check(library, file, registrations);
  } catch (const InvalidArgument& error) {
    plugins.refused[library] = error.what();
    throw;
  }
  for (const PluginRegistration& one : registrations) one.take_up();
  plugins.all.push_back({library, info});
  LOG(INFO) << "Loaded plug-in " << info.name << (info.version.empty() ? "" : " ") << info.version
            << " from " << info.path << " with " << info.layer_types.size() << " layer types";
  return info;
}

std::vector<PluginInfo> LoadedPlugins() {
  Plugins& plugins = AllPlugins();
  const std::scoped_lock lock(plugins.mutex);
  std::vector<PluginInfo> infos;
  for (const Loaded& one : plugins.all) infos.push_back(one.info);
  return infos;
}

}  // namespace caffe
