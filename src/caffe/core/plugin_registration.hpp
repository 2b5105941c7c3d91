// What a plug-in registers while it is loaded takes effect only when all of it has been found to
// fit.
#pragma once

#include <functional>
#include <string>

#include "caffe/export.hpp"

namespace caffe {

struct PluginRegistration {
  std::string layer_type;         // empty for what is no layer
  std::function<void()> check;    // throws InvalidArgument where it does not fit
  std::function<void()> take_up;  // does not throw
};

// Keeps it back while this thread loads a plug-in; false where it loads none.
CAFFE_EXPORT bool KeepBackForPlugin(PluginRegistration registration);

}  // namespace caffe
