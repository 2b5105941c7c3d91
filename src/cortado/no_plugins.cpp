// The runtime library has the kernels that it is built with.
#include "caffe/core/plugin_registration.hpp"

namespace caffe {

bool KeepBackForPlugin(PluginRegistration) {
  return false;
}

}  // namespace caffe
