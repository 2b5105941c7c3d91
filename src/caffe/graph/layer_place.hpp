// Names a layer in error messages.
#pragma once

#include <stdexcept>
#include <string>

#include "caffe/error.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// "layer 'fc' (InnerProduct)"
inline std::string PlaceOf(const LayerParameter& layer) {
  return StrCat("layer '", layer.name(), "' (", layer.type(), ")");
}

// Calls a layer's own code. Prefixes the layer to its errors, and to errors of the C++ standard
// library, which layers from plug-ins may throw. Other errors, such as Python's, pass unchanged.
template <typename Fn>
decltype(auto) CallLayer(const LayerParameter& layer, Fn&& fn) {
  try {
    return WithContext(PlaceOf(layer), fn);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw InvalidArgument(StrCat(PlaceOf(layer), ": ", error.what()));
  } catch (const std::logic_error& error) {
    throw InvalidArgument(StrCat(PlaceOf(layer), ": ", error.what()));
  }
}

}  // namespace caffe
