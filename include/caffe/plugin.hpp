// Plug-ins: shared libraries with their own layers and operations, loaded into a running program.
// Used by `--plugin` of the programs, `plugin` in solvers and nets, and caffe.load_plugin() in
// Python.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/plugin_descriptor.hpp"

namespace caffe {

struct PluginInfo {
  std::string path;
  std::string name, version;             // given by the plug-in
  std::vector<std::string> layer_types;  // registered by the plug-in, sorted
};

// Loads a plug-in for the lifetime of the process and registers its layers; does nothing if it is
// already loaded. `file` is a path, relative to the current folder, or the name of a library that
// the system's loader finds. Throws InvalidArgument, and registers nothing, for a file that is not
// a library, lacks symbols or CAFFE_PLUGIN, was compiled for another interface, throws while it is
// loaded, or has a layer type that is taken.
// Protobuf messages of a rejected library stay registered. After a library that threw, another
// thread's use of the system's loader may hang: end the process.
CAFFE_EXPORT PluginInfo LoadPlugin(const std::string& file);

// Plug-ins in the order in which they were loaded.
CAFFE_EXPORT std::vector<PluginInfo> LoadedPlugins();

}  // namespace caffe
