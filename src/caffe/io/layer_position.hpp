// Finds the position of a layer in its file, for errors that occur after parsing.
#pragma once

#include <string>
#include <utility>

#include "caffe/export.hpp"
#include "caffe/io/with_position.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Returns "FILE:LINE:COLUMN" of the layer with which `message` begins ("layer 'conv1'..."); if
// several have its name, the first that `phase` may have. Empty if the message or the file has
// none, and for a file that is not regular. Reads the file again, so that nothing has to be stored
// for errors that may not occur.
CAFFE_EXPORT ErrorPlace PositionOfLayer(const std::string& file, Phase phase,
                                        const std::string& message);

// Runs `build`; prepends the layer's position to an Error that begins with a layer. Adds nothing if
// `file` is empty.
template <typename Build>
decltype(auto) WithLayerPosition(const std::string& file, Phase phase, Build&& build) {
  return WithPosition(
      [&](const std::string& message) { return PositionOfLayer(file, phase, message); },
      std::forward<Build>(build));
}

}  // namespace caffe
