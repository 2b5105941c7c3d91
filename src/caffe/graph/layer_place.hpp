// How errors name a layer.
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

// Calls a layer's own code. What it throws begins with the layer; so does what layers from outside
// may throw, errors of standard C++. Others, such as Python's, pass.
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
