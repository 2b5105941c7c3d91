// Plug-ins: shared libraries with layers and operations of their own, loaded into a running
// program. `--plugin` of the programs, `plugin` in solvers and nets and caffe.load_plugin() in
// Python end here.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/plugin_descriptor.hpp"

namespace caffe {

struct PluginInfo {
  std::string path;
  std::string name, version;             // the plug-in's own
  std::vector<std::string> layer_types;  // what it registered, sorted
};

// Loads a plug-in for the rest of the process and registers its layers; one that is loaded already
// stays as it is. `file` is a path, from the current folder where it is relative, or the name of a
// library that the system's loader finds. Throws InvalidArgument, and registers nothing, for a
// file that is no library, lacks symbols or CAFFE_PLUGIN, was compiled for another interface,
// throws while it is loaded, or has a layer type that is taken.
// Messages of protobuf that a refused library brought stay known. After one that threw, another
// thread's use of the system's loader may hang: end the process.
CAFFE_EXPORT PluginInfo LoadPlugin(const std::string& file);

// In the order in which they were loaded.
CAFFE_EXPORT std::vector<PluginInfo> LoadedPlugins();

}  // namespace caffe
