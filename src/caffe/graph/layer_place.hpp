// How errors name a layer.
#pragma once

#include <string>

#include "caffe/error.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// "layer 'fc' (InnerProduct)"
inline std::string PlaceOf(const LayerParameter& layer) {
  return StrCat("layer '", layer.name(), "' (", layer.type(), ")");
}

}  // namespace caffe
