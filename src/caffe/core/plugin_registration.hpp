// Registrations of a plug-in are held back while it is loaded. They take effect only if all of them
// are valid.
#pragma once

#include <functional>
#include <string>

#include "caffe/export.hpp"

namespace caffe {

struct PluginRegistration {
  std::string layer_type;         // empty if this registers no layer
  std::function<void()> check;    // throws InvalidArgument if invalid
  std::function<void()> take_up;  // does not throw
};

// Holds the registration back while this thread loads a plug-in; returns false if it loads none.
CAFFE_EXPORT bool KeepBackForPlugin(PluginRegistration registration);

}  // namespace caffe
