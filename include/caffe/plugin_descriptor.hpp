// A plug-in's description of itself, in C so that a program of any version can read it.
#pragma once

#include <stdint.h>

#include "caffe/export.hpp"
#include "caffe/version.hpp"

// Incremented whenever plug-ins have to be recompiled: when a class, an operation or a macro that
// they use changes in these headers.
#define CAFFE_PLUGIN_INTERFACE 1

extern "C" {
struct CaffePlugin {
  uint32_t struct_size;       // sizeof(CaffePlugin) in the plug-in
  uint32_t plugin_interface;  // CAFFE_PLUGIN_INTERFACE in the plug-in
  const char* caffe_version;  // CAFFE_VERSION of the headers it was compiled with
  const char* name;           // "": the file's name
  const char* version;        // the plug-in's version
};
}

// Used once in a plug-in, outside of namespaces: CAFFE_PLUGIN("my_layers", "1.0");
#define CAFFE_PLUGIN(name, version)                                                             \
  extern "C" {                                                                                  \
  extern CAFFE_EXPORT __attribute__((weak)) const CaffePlugin caffe_plugin;                     \
  const CaffePlugin caffe_plugin = {sizeof(CaffePlugin), CAFFE_PLUGIN_INTERFACE, CAFFE_VERSION, \
                                    name, version};                                             \
  }                                                                                             \
  static_assert(true, "")
