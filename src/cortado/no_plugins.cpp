// The runtime library cannot load plug-ins: it has only its built-in kernels.
#include "caffe/core/plugin_registration.hpp"

namespace caffe {

bool KeepBackForPlugin(PluginRegistration) {
  return false;
}

}  // namespace caffe
